//! `reqwest::Client` as a service of `reqwest::Request` under the retry layer.

use std::convert::Infallible;

use crate::support::{Server, chunked, quick, status};
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, StatusCode};
use http_body_util::StreamBody;
use reattempt::classify::IDEMPOTENCY_KEY;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Http, Report, Retry, RetryLayer, RetryPolicy, StopReason};
use reattempt_faults::Reply;
use reqwest::{Body, Method, Request, Url};
use tokio::net::TcpSocket;
use tower::{Service, ServiceBuilder, ServiceExt};

/// Returns reqwest without its own retries, so every repetition is the layer's.
fn builder() -> reqwest::ClientBuilder {
    reqwest::Client::builder().retry(reqwest::retry::never()).no_proxy()
}

fn bare() -> reqwest::Client {
    builder().build().unwrap()
}

/// Reserves a port without a listener for as long as the socket lives; returns its URL.
fn no_listener() -> (TcpSocket, Url) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    (socket, url.parse().unwrap())
}

fn client() -> Retry<reqwest::Client, RetryPolicy<Http, Constant>> {
    ServiceBuilder::new().layer(RetryLayer::new(quick())).service(bare())
}

fn request(method: Method, server: &Server) -> Request {
    Request::new(method, Url::parse(&server.url("/")).unwrap())
}

fn with_body(method: Method, server: &Server, body: impl Into<Body>) -> Request {
    let mut request = request(method, server);
    *request.body_mut() = Some(body.into());
    request
}

/// Each piece arrives as a chunk of its own.
fn pieces(pieces: &'static [&'static str]) -> impl stream::Stream<Item = Result<Bytes, Infallible>> + Send + 'static {
    stream::iter(pieces.iter().map(|piece| Ok(Bytes::from_static(piece.as_bytes()))))
}

#[tokio::test]
async fn default_layer_keeps_the_response_type() {
    let server = Server::http1([status(503), status(200), status(429)]).await;
    let mut client = ServiceBuilder::new().layer(RetryLayer::http()).service(bare());

    let (other, first) = (client.clone(), request(Method::GET, &server));
    let called = tokio::spawn(async move { client.ready().await?.call(first).await });
    let answer: Result<reqwest::Response, reqwest::Error> = called.await.unwrap();
    assert_eq!(answer.unwrap().text().await.unwrap(), "short");

    let put = bare().put(server.url("/")).body("built").build().unwrap();
    let answer: reqwest::Response = tokio::spawn(other.oneshot(put)).await.unwrap().unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(server.bodies(), ["", "", "built", "built"]);
}

#[tokio::test]
async fn the_report_is_in_the_response() {
    let server = Server::http1([status(500), status(502)]).await;
    let answer = client().oneshot(request(Method::GET, &server)).await.unwrap();
    let report = answer.extensions().get::<Report>().unwrap();
    assert_eq!((report.retries(), report.stop_reason()), (2, StopReason::Succeeded));
    let codes = report.attempts().iter().map(|attempt| match &attempt.outcome {
        AttemptOutcome::Failed { failure, .. } => failure.code(),
        _ => None,
    });
    assert_eq!(codes.collect::<Vec<_>>(), [Some(500), Some(502), None]);
}

#[tokio::test]
async fn streams_are_sent_again_whole() {
    let server = Server::http1([status(503), status(503), status(200), status(503)]).await;
    let stream = Body::wrap_stream(pieces(&["in ", "a ", "stream"]));
    let answer = client().oneshot(with_body(Method::PUT, &server, stream)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);

    let frames = stream::iter([Ok::<_, Infallible>(http_body::Frame::data(Bytes::from("wrapped")))]);
    let wrapped = Body::wrap(StreamBody::new(frames));
    let answer = client().oneshot(with_body(Method::PUT, &server, wrapped)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(server.bodies(), ["in a stream", "in a stream", "in a stream", "wrapped", "wrapped"]);
}

#[tokio::test]
async fn redirect_with_bytes_is_followed() {
    let redirect = status(307).header(http::header::LOCATION, HeaderValue::from_static("/moved"));
    // Refused on both sides of the redirect, so both hops are repeated.
    let server = Server::http1([status(503), redirect.clone(), status(503), redirect]).await;
    let answer = client().oneshot(with_body(Method::PUT, &server, "bytes")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(answer.url().path(), "/moved");
    let paths = server.seen().into_iter().map(|seen| seen.target).collect::<Vec<_>>();
    assert_eq!(paths, ["/", "/", "/moved", "/", "/moved"]);
    assert_eq!(server.bodies(), ["bytes"; 5]);
}

// trap 07
#[tokio::test]
async fn drained_connection_is_reused() {
    // A page that hyper does not read to its end by itself.
    let page = chunked(503, "an error page in chunks");
    let server = Server::http1([page.clone(), page]).await;
    client().oneshot(request(Method::GET, &server)).await.unwrap();
    let connections = server.seen().iter().map(|seen| seen.connection).collect::<Vec<_>>();
    assert_eq!(connections, [1, 1, 1]);
}

// trap 30
#[tokio::test]
async fn error_keeps_its_type_and_has_a_report() {
    let server = Server::http1([Reply::reset(), Reply::reset(), Reply::reset()]).await;
    let slot = ReportSlot::default();
    let client = client().with_options(CallOptions::new().report_to(&slot));

    let post = with_body(Method::POST, &server, "once");
    let error: reqwest::Error = client.clone().oneshot(post).await.unwrap_err();
    assert!(error.is_request() && !error.is_connect(), "{error:?}");
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::NotRepeatable);
    assert_eq!(server.bodies(), ["once"]);

    let mut keyed = with_body(Method::POST, &server, "keyed");
    keyed.headers_mut().insert(IDEMPOTENCY_KEY, HeaderValue::from_static("order-17"));
    let answer = client.oneshot(keyed).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(slot.take().unwrap().retries(), 2);
    assert_eq!(server.bodies(), ["once", "keyed", "keyed", "keyed"]);
}

#[tokio::test]
async fn refused_connection_is_retried() {
    let (_socket, url) = no_listener();
    let slot = ReportSlot::default();
    let client = client().with_options(CallOptions::new().report_to(&slot));
    let error = client.oneshot(Request::new(Method::GET, url)).await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    let report = slot.take().unwrap();
    assert_eq!((report.retries(), report.stop_reason()), (2, StopReason::AttemptsExhausted));
}

// trap 24
#[tokio::test]
async fn post_is_retried_without_redirects_only() {
    let refused = || Server::http1([status(429)]);
    let slot = ReportSlot::default();
    let options = CallOptions::new().report_to(&slot);

    // The redirecting server has carried the request out, so the next hop's refusal is no proof.
    let (server, following) = (refused().await, client().with_options(options.clone()));
    let answer = following.clone().oneshot(with_body(Method::POST, &server, "once")).await;
    assert_eq!(answer.unwrap().status(), StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(server.bodies(), ["once"]);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::EarlierHop);
    let (_socket, url) = no_listener();
    following.oneshot(Request::new(Method::POST, url)).await.unwrap_err();
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::EarlierHop);

    let straight = builder().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let straight = Retry::new(quick().protocol(|http| http.redirects_below(false)), straight).with_options(options);
    let server = refused().await;
    let answer = straight.clone().oneshot(with_body(Method::POST, &server, "again")).await;
    assert_eq!(answer.unwrap().status(), StatusCode::OK);
    assert_eq!(server.bodies(), ["again", "again"]);
    let (_socket, url) = no_listener();
    straight.oneshot(Request::new(Method::POST, url)).await.unwrap_err();
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::AttemptsExhausted);
}

#[tokio::test]
async fn a_handle_overrides_what_the_policy_says() {
    let failing = || Server::http1((0..9).map(|_| status(503)));
    let client = client();

    let server = failing().await;
    let patient = client.with_options(CallOptions::new().max_attempts(5));
    let answer = patient.oneshot(request(Method::GET, &server)).await.unwrap();
    assert_eq!((answer.status(), server.seen().len()), (StatusCode::SERVICE_UNAVAILABLE, 5));

    let server = failing().await;
    let single = client.with_options(CallOptions::new().never_retry());
    let stream = Body::wrap_stream(pieces(&["only ", "once"]));
    let answer = single.oneshot(with_body(Method::PUT, &server, stream)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(server.bodies(), ["only once"]);

    let server = Server::http1([status(503)]).await;
    let marked = client.with_options(CallOptions::new().repeatable(true));
    let answer = marked.oneshot(with_body(Method::POST, &server, "twice")).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert_eq!(server.bodies(), ["twice", "twice"]);

    // The handle that they were made from is unchanged.
    let server = failing().await;
    client.oneshot(request(Method::GET, &server)).await.unwrap();
    assert_eq!(server.seen().len(), 3);
}

// trap 04
#[tokio::test]
async fn streamed_body_over_the_cap_is_sent_once() {
    let server = Server::http1([status(503)]).await;
    let large = vec![b'l'; 64 * 1024 + 1];
    let halves = large.chunks(40_000).map(Bytes::copy_from_slice).map(Ok::<_, Infallible>);
    let stream = Body::wrap_stream(stream::iter(halves.collect::<Vec<_>>()));
    let answer = client().oneshot(with_body(Method::PUT, &server, stream)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let report = answer.extensions().get::<Report>().unwrap();
    assert_eq!(report.stop_reason(), StopReason::BodyNotKept);
    assert_eq!(answer.text().await.unwrap(), "short");
    let lengths = server.bodies().iter().map(String::len).collect::<Vec<_>>();
    assert_eq!(lengths, [64 * 1024 + 1]);
}

/// The cap counts copied bytes; bytes in memory are kept by reference.
#[tokio::test]
async fn bytes_over_the_cap_are_sent_again() {
    let server = Server::http1([status(503)]).await;
    let large = vec![b'l'; 64 * 1024 + 1];
    let answer = client().oneshot(with_body(Method::PUT, &server, large)).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let lengths = server.bodies().iter().map(String::len).collect::<Vec<_>>();
    assert_eq!(lengths, [64 * 1024 + 1; 2]);
}
