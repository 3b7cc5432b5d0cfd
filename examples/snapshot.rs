//! An axum handler for the question "what is my client doing now": budgets, breakers and servers, as text and JSON.
//!
//! `cargo run --example snapshot`

use std::net::SocketAddr;

use axum::Json;
use axum::Router;
use axum::body::{Body, to_bytes};
use axum::extract::State;
use axum::response::IntoResponse;
use axum::routing::get;
use http::{Request, StatusCode};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use reattempt::ReplayBody;
use reattempt::endpoints::{BaseUrl, Endpoints, EndpointsHandle};
use reattempt::guard::{Bulkhead, CircuitBreaker};
use reattempt::snapshot::Snapshot;
use reattempt::standard::StandardLayer;
use reattempt::{RetryBudget, RetryPolicy};
use tokio::net::TcpListener;
use tower::{BoxError, Layer};

/// The handles that the program keeps: clones of what its client was built with.
#[derive(Clone)]
struct Handles {
    budget: RetryBudget,
    breaker: CircuitBreaker,
    servers: EndpointsHandle<BaseUrl>,
}

impl Handles {
    fn snapshot(&self) -> Snapshot {
        Snapshot::new().add("stock", &self.budget).add("stock", &self.breaker).add("stock", &self.servers)
    }
}

/// For people. It names servers, so it belongs on an internal port.
async fn now(State(handles): State<Handles>) -> String {
    handles.snapshot().to_string()
}

/// For programs.
async fn now_as_json(State(handles): State<Handles>) -> impl IntoResponse {
    Json(handles.snapshot())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // One server that works, and one that has just gone.
    let well = serve(Router::new().fallback(|| async { "42" })).await?;
    let gone = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;

    let (budget, breaker) = (RetryBudget::cautious(), CircuitBreaker::rate());
    let policy = RetryPolicy::http().budget(budget.clone()).boxed_errors();
    let servers = Endpoints::urls([format!("http://{gone}"), format!("http://{well}")])?;
    let layer = StandardLayer::http().retry(policy).limits(breaker.clone(), Bulkhead::new(16)).endpoints(servers);
    let handles = Handles { budget, breaker, servers: layer.endpoints_handle() };
    let client = layer.layer(Client::builder(TokioExecutor::new()).build_http::<ReplayBody<Body>>());
    for _ in 0..20 {
        let response = client.send(Request::get(format!("http://{gone}/")).body(Body::empty())?).await?;
        assert_eq!(response.status(), StatusCode::OK);
    }

    let admin = Router::new().route("/now", get(now)).route("/now.json", get(now_as_json)).with_state(handles);
    let admin = serve(admin).await?;
    let operator = Client::builder(TokioExecutor::new()).build_http();
    let text = read(&operator, format!("http://{admin}/now")).await?;
    println!("{text}");
    assert!(text.contains("in_service 1, out 1") && text.contains("reason no connection"));
    let json = read(&operator, format!("http://{admin}/now.json")).await?;
    println!("{json}");
    assert!(json.starts_with(r#"[{"kind":"budget","name":"stock","rule":"cautious","capacity":10.0"#));
    Ok(())
}

async fn read(operator: &Client<HttpConnector, Body>, url: String) -> Result<String, BoxError> {
    let response = operator.get(url.parse()?).await?;
    let body = to_bytes(Body::new(response.into_body()), 100_000).await?;
    Ok(String::from_utf8(body.to_vec())?)
}

async fn serve(router: Router) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}
