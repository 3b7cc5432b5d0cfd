//! An axum service that calls another service through the retry layer, with the client in its
//! state.

use std::net::SocketAddr;
use std::time::Duration;

use reattempt_faults::Reply;

use crate::support::{Server, reply, status};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::{Deadline, ReplayBody, Report, Retry, RetryLayer, StopReason};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tower::{Service, ServiceBuilder, ServiceExt};

/// The client's type, as a user writes it.
type Downstream = Retry<Client<HttpConnector, ReplayBody<Body>>>;

fn downstream() -> Downstream {
    ServiceBuilder::new().layer(RetryLayer::http()).service(Client::builder(TokioExecutor::new()).build_http())
}

#[derive(Clone)]
struct App {
    client: Downstream,
    url: String,
    reports: mpsc::UnboundedSender<Report>,
}

/// Sends the call to the next service, with its deadline.
async fn relay(State(app): State<App>, inbound: Request) -> Result<Response, StatusCode> {
    let deadline = Deadline::from_headers(inbound.headers());
    let mut outbound = inbound;
    *outbound.uri_mut() = app.url.parse().unwrap();
    if let Some(deadline) = deadline {
        deadline.write_to(outbound.headers_mut());
        outbound.extensions_mut().insert(deadline);
    }
    let answer = app.client.oneshot(outbound).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    if let Some(report) = answer.extensions().get::<Report>() {
        app.reports.send(report.clone()).unwrap();
    }
    Ok(answer.into_response())
}

/// The service in front, which stops when it is dropped.
struct Front {
    address: SocketAddr,
    reports: mpsc::UnboundedReceiver<Report>,
    task: JoinHandle<()>,
}

impl Front {
    async fn of(server: &Server) -> Self {
        let (sender, reports) = mpsc::unbounded_channel();
        let app = App { client: downstream(), url: server.url("/behind"), reports: sender };
        let (address, task) = serve(Router::new().fallback(relay).with_state(app)).await;
        Self { address, reports, task }
    }

    /// Calls the service by a client without retries.
    async fn call(&self, method: &str, timeout: Option<&str>) -> http::Response<Incoming> {
        let mut request = http::Request::builder().method(method);
        if let Some(timeout) = timeout {
            request = request.header("grpc-timeout", timeout);
        }
        let request = request.uri(format!("http://{}/", self.address));
        let request = request.body(Full::new(Bytes::from("inbound"))).unwrap();
        Client::builder(TokioExecutor::new()).build_http().request(request).await.unwrap()
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(router: Router) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    (address, tokio::spawn(async move { axum::serve(listener, router).await.unwrap() }))
}

/// Returns a refusal with this delay in seconds.
fn refused(seconds: u16) -> Reply {
    reply(503, "come back").header(http::header::RETRY_AFTER, seconds.into())
}

#[tokio::test]
async fn handler_calls_by_client_in_its_state() {
    let server = Server::http1([status(503), status(502), status(200)]).await;
    let mut front = Front::of(&server).await;
    let answer = front.call("PUT", None).await;
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(server.bodies(), ["inbound"; 3], "the inbound body, handed on as it streams in");
    let report = front.reports.recv().await.unwrap();
    assert_eq!((report.retries(), report.stop_reason()), (2, StopReason::Succeeded));
}

// trap 20
#[tokio::test]
async fn refusal_past_deadline_is_returned() {
    let server = Server::http1([refused(20), refused(20), refused(20)]).await;
    let mut front = Front::of(&server).await;
    let answer = front.call("GET", Some("10S")).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers()["retry-after"], "20");
    assert_eq!(answer.into_body().collect().await.unwrap().to_bytes(), "come back");
    assert_eq!(server.seen().len(), 1);
    assert_eq!(front.reports.recv().await.unwrap().stop_reason(), StopReason::DeadlineExceeded);
}

#[tokio::test]
async fn refusal_within_deadline_is_retried() {
    let server = Server::http1([refused(0), refused(0), refused(0)]).await;
    let mut front = Front::of(&server).await;
    let answer = front.call("GET", Some("10S")).await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(front.reports.recv().await.unwrap().stop_reason(), StopReason::AttemptsExhausted);
    let seen = server.seen();
    assert_eq!(seen.len(), 3);
    for seen in seen {
        let handed_on = Deadline::from_headers(&seen.headers).unwrap();
        assert!(handed_on.remaining() <= Duration::from_secs(10), "{:?}", seen.headers);
    }
}

#[tokio::test]
async fn the_client_alone_can_be_the_state() {
    async fn called(State(mut client): State<(Downstream, String)>) -> Result<Response, StatusCode> {
        let request = http::Request::get(&client.1).body(Body::empty()).unwrap();
        let ready = client.0.ready().await.map_err(|_| StatusCode::BAD_GATEWAY)?;
        let answer = ready.call(request).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
        Ok(answer.into_response())
    }
    let server = Server::http1([status(503)]).await;
    let state = (downstream(), server.url("/"));
    let (address, task) = serve(Router::new().route("/", any(called)).with_state(state)).await;
    let request = http::Request::get(format!("http://{address}/")).body(Body::empty()).unwrap();
    let answer = Client::builder(TokioExecutor::new()).build_http().request(request).await.unwrap();
    assert_eq!((answer.status(), server.seen().len()), (StatusCode::OK, 2));
    task.abort();
}
