//! Services below the retry layer that follow redirects. A POST that was carried out is not
//! repeated because a later hop fails.

use std::convert::Infallible;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, Response, Uri, header};
use http_body::Frame;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::report::ReportSlot;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Http, ReplayBody, RetryLayer, RetryPolicy, StopReason};
use reattempt_faults::Reply;
use tokio::net::TcpSocket;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt};
use tower_http::follow_redirect::FollowRedirectLayer;

use crate::not_processed::support::{Server, quick, status};

type Policy = RetryPolicy<Http, Constant>;
type Attempt = Request<ReplayBody<BoxBody<Bytes, Infallible>>>;
type Below = BoxCloneService<Attempt, Response<Empty<Bytes>>, BoxError>;

fn hyper() -> Client<HttpConnector, BoxBody<Bytes, BoxError>> {
    Client::builder(TokioExecutor::new()).build_http()
}

/// tower-http's layer around hyper-util's client.
fn follow_redirect() -> Below {
    ServiceBuilder::new()
        .map_request(|attempt: Attempt| attempt.map(BodyExt::boxed))
        .map_response(|response: Response<_>| response.map(|_| Empty::new()))
        .map_err(BoxError::from)
        .layer(FollowRedirectLayer::new())
        .service(hyper())
        .boxed_clone()
}

/// Returns an adapter around reqwest, as in programs that use the types of `http`.
fn reqwest_adapter() -> Below {
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    tower::service_fn(move |attempt: Attempt| {
        let client = client.clone();
        async move {
            let request = attempt.map(reqwest::Body::wrap).try_into()?;
            let response = client.execute(request).await?;
            Ok(Response::from(response).map(|_| Empty::new()))
        }
    })
    .boxed_clone()
}

/// Returns a custom service that follows one redirect and leaves no trace of it.
fn own_follower() -> Below {
    tower::service_fn(|attempt: Attempt| async {
        let response = hyper().request(attempt.map(BodyExt::boxed)).await.map_err(hide)?;
        let Some(location) = response.headers().get(header::LOCATION) else {
            return Ok(response.map(|_| Empty::new()));
        };
        let uri: Uri = location.to_str()?.parse()?;
        let empty = Empty::new().map_err(|never| match never {}).boxed();
        let next = Request::get(uri).body(empty)?;
        Ok(hyper().request(next).await.map_err(hide)?.map(|_| Empty::new()))
    })
    .boxed_clone()
}

/// An error that still shows that no connection was made, and nothing of the client.
fn hide(error: hyper_util::client::legacy::Error) -> BoxError {
    let mut cause: &(dyn Error + 'static) = &error;
    while let Some(next) = cause.source() {
        cause = next;
    }
    match cause.downcast_ref::<std::io::Error>() {
        Some(error) => std::io::Error::from(error.kind()).into(),
        None => error.into(),
    }
}

fn request(method: &str, uri: &str, body: &'static str) -> Request<BoxBody<Bytes, Infallible>> {
    let body = match body {
        "" => Empty::new().boxed(),
        body => Full::from(body).boxed(),
    };
    Request::builder().method(method).uri(uri).body(body).unwrap()
}

/// Reserves an address without a listener for as long as the socket lives.
fn refused() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let uri = format!("http://{}/done", socket.local_addr().unwrap());
    (socket, uri)
}

fn see_other(location: &str) -> Reply {
    status(303).header(header::LOCATION, location.parse().unwrap())
}

fn too_many() -> Reply {
    status(429)
}

/// Sends a request, and returns the stop reason of the call.
async fn ended(policy: Policy, below: Below, request: Request<BoxBody<Bytes, Infallible>>) -> StopReason {
    let slot = ReportSlot::default();
    let options = CallOptions::new().report_to(&slot);
    let client = RetryLayer::new(policy.boxed_errors()).layer(below).with_options(options);
    let _ = client.oneshot(request).await;
    slot.take().unwrap().stop_reason()
}

fn posts(server: &Server) -> usize {
    server.seen().iter().filter(|seen| seen.method == Method::POST).count()
}

// trap 35
#[tokio::test]
async fn post_is_sent_once_if_next_hop_sends_429() {
    for below in [follow_redirect(), reqwest_adapter()] {
        for (path, body) in [("/done", "pay"), ("/form", "pay"), ("/done", ""), ("/form", "")] {
            let server = Server::http1([see_other(path), too_many()]).await;
            let post = request("POST", &server.url("/form"), body);
            let reason = ended(quick(), below.clone(), post).await;
            assert_eq!((posts(&server), reason), (1, StopReason::EarlierHop), "{path} {body}");
        }
    }
}

// trap 35
#[tokio::test]
async fn post_is_sent_once_if_next_hop_is_refused() {
    let (_socket, nowhere) = refused();
    for below in [follow_redirect(), reqwest_adapter(), own_follower()] {
        let server = Server::http1([see_other(&nowhere), see_other(&nowhere)]).await;
        let post = request("POST", &server.url("/form"), "pay");
        let reason = ended(quick(), below, post).await;
        assert_eq!((posts(&server), reason), (1, StopReason::EarlierHop));
    }
}

/// A client need not poll an empty body, but it asks for its length.
// trap 35, trap 48
#[tokio::test]
async fn empty_post_is_sent_once() {
    let (_socket, nowhere) = refused();
    for (below, policy) in [
        (reqwest_adapter(), quick()),
        (own_follower(), quick()),
        (own_follower(), quick().protocol(|http| http.redirects_below(true))),
        (follow_redirect(), quick()),
        (follow_redirect(), quick().protocol(|http| http.redirects_below(true))),
    ] {
        let script = [see_other(&nowhere), see_other(&nowhere), see_other(&nowhere)];
        let server = Server::http1(script).await;
        let reason = ended(policy, below, request("POST", &server.url("/form"), "")).await;
        assert_eq!((posts(&server), reason), (1, StopReason::EarlierHop));
    }
}

/// Repeatable requests are retried behind a redirect, too.
#[tokio::test]
async fn repeatable_is_retried_behind_redirect() {
    for below in [follow_redirect(), reqwest_adapter()] {
        let script = [see_other("/done"), too_many(), see_other("/done")];
        let server = Server::http1(script).await;
        let mut post = request("POST", &server.url("/form"), "pay");
        post.headers_mut().insert("idempotency-key", "\"7\"".parse().unwrap());
        assert_eq!(ended(quick(), below, post).await, StopReason::Succeeded);
        assert_eq!(posts(&server), 2);
    }
}

/// The policy's setting overrides every sign.
#[tokio::test]
async fn redirects_below_false_is_obeyed() {
    for below in [follow_redirect(), reqwest_adapter()] {
        let server = Server::http1([too_many()]).await;
        let post = request("POST", &server.url("/form"), "pay");
        let policy = quick().protocol(|http| http.redirects_below(false));
        assert_eq!(ended(policy, below, post).await, StopReason::Succeeded);
        assert_eq!(posts(&server), 2);
    }
}

/// A request whose body was not polled was not sent.
#[tokio::test]
async fn post_that_was_not_sent_is_retried() {
    let (_socket, nowhere) = refused();
    for body in ["pay", ""] {
        let reason = ended(quick(), own_follower(), request("POST", &nowhere, body)).await;
        assert_eq!(reason, StopReason::AttemptsExhausted);
    }
}

/// An earlier attempt that was sent and refused with 429 is no sign of a redirect.
#[tokio::test]
async fn post_is_retried_if_not_sent_after_429() {
    for streamed in [false, true] {
        let attempts = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&attempts);
        let below = tower::service_fn(move |attempt: Attempt| {
            let number = counted.fetch_add(1, Ordering::Relaxed);
            async move {
                if number == 1 {
                    return Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused).into());
                }
                attempt.into_body().collect().await?;
                let status = if number == 0 { 429 } else { 200 };
                Ok(Response::builder().status(status).body(Empty::new())?)
            }
        });
        let mut post = request("POST", "http://one.example/", "pay");
        if streamed {
            let frames = ["p", "ay"].map(|piece| Ok(Frame::data(Bytes::from(piece))));
            *post.body_mut() = BodyExt::boxed(StreamBody::new(stream::iter(frames)));
        }
        assert_eq!(ended(quick(), below.boxed_clone(), post).await, StopReason::Succeeded);
        assert_eq!(attempts.load(Ordering::Relaxed), 3);
    }
}

/// A streamed body leaves the same sign.
// trap 35
#[tokio::test]
async fn streamed_post_is_sent_once() {
    let (_socket, nowhere) = refused();
    let server = Server::http1([see_other(&nowhere)]).await;
    let mut post = request("POST", &server.url("/form"), "");
    let frames = ["p", "ay"].map(|piece| Ok(Frame::data(Bytes::from(piece))));
    *post.body_mut() = BodyExt::boxed(StreamBody::new(stream::iter(frames)));
    assert_eq!(ended(quick(), own_follower(), post).await, StopReason::EarlierHop);
    assert_eq!(posts(&server), 1);
}
