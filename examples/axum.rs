//! An axum service that calls another service: the client is part of its state, and the deadline is propagated.
//!
//! `cargo run --example axum`

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::{Extensions, Request, StatusCode};
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use reattempt::deadline::InboundDeadlineLayer;
use reattempt::{Deadline, ReplayBody, Report, Retry, RetryLayer};
use tokio::net::TcpListener;
use tower::{BoxError, ServiceBuilder};

/// The state of the handlers. Its clones are clones of one client, which share connections and the retry budget.
#[derive(Clone)]
struct App {
    client: Retry<Client<HttpConnector, ReplayBody<Body>>>,
    stock: SocketAddr,
}

/// Asks the stock service within the caller's own deadline.
async fn price(State(app): State<App>, inbound: Extensions) -> Result<Response, StatusCode> {
    let outbound = Request::get(format!("http://{}/", app.stock)).body(Body::empty());
    let mut outbound = outbound.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    // No retry begins after the caller's deadline.
    Deadline::propagate(&inbound, outbound.extensions_mut());
    let answer = app.client.send(outbound).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    if let Some(report) = answer.extensions().get::<Report>() {
        println!("{report}");
    }
    Ok(answer.into_response())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    // The stock service fails twice, then it responds. After that it asks for a long delay.
    let arrived = Arc::new(AtomicUsize::new(0));
    let stock = Router::new().fallback(move || {
        let answer = match arrived.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => StatusCode::SERVICE_UNAVAILABLE.into_response(),
            2 => "42".into_response(),
            _ => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "5")]).into_response(),
        };
        async { answer }
    });
    let stock = serve(stock).await?;

    let client =
        ServiceBuilder::new().layer(RetryLayer::http()).service(Client::builder(TokioExecutor::new()).build_http());
    let shop = Router::new().route("/", get(price)).with_state(App { client, stock });
    let shop = serve(shop.layer(InboundDeadlineLayer::grpc())).await?;

    let caller = Client::builder(TokioExecutor::new()).build_http::<Body>();
    for expected in [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE] {
        let request = Request::get(format!("http://{shop}/")).header("grpc-timeout", "2S");
        let answer = caller.request(request.body(Body::empty())?).await?;
        println!("=> {}\n", answer.status());
        assert_eq!(answer.status(), expected);
    }
    Ok(())
}

async fn serve(router: Router) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(address)
}
