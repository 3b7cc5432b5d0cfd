//! Tests with many calls at once over one HTTP/2 connection: how the calls that wait for it end.

use std::error::Error;

use hyper::client::conn;
use hyper_util::rt::TokioIo;
use reattempt_core::Verdict;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinSet;

use super::server::{SETTINGS, read_http2_headers, read_on, refused, serve, write_frame};
use super::*;

type Ended = Result<(), Box<dyn Error + Send + Sync>>;

/// A client whose calls are all in flight before the first one ends.
trait Crowd: Clone + Send + 'static {
    fn call(&self, request: Request<Body>) -> impl Future<Output = Ended> + Send + 'static;
}

impl Crowd for Client<HttpConnector, Body> {
    fn call(&self, request: Request<Body>) -> impl Future<Output = Ended> + Send + 'static {
        let response = self.request(request);
        async { Ok(response.await.map(drop)?) }
    }
}

#[cfg(feature = "reqwest")]
impl Crowd for reqwest::Client {
    fn call(&self, request: Request<Body>) -> impl Future<Output = Ended> + Send + 'static {
        let request = request.map(reqwest::Body::wrap).try_into().unwrap();
        let response = self.execute(request);
        async { Ok(response.await.map(drop)?) }
    }
}

#[cfg(feature = "reqwest")]
fn reqwest_client() -> reqwest::Client {
    reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap()
}

fn request(method: &Method, uri: &str) -> Request<Body> {
    let mut request = get(uri);
    *request.method_mut() = method.clone();
    request
}

/// Returns the errors of `number` concurrent calls.
async fn crowd(
    client: &impl Crowd,
    number: usize,
    method: &Method,
    server: std::net::SocketAddr,
) -> Vec<Box<dyn Error + Send + Sync>> {
    let uri = format!("http://{server}/");
    let mut calls = JoinSet::new();
    for _ in 0..number {
        calls.spawn(client.call(request(method, &uri)));
    }
    calls.join_all().await.into_iter().map(Result::unwrap_err).collect()
}

async fn assert_all(client: &impl Crowd, server: impl AsyncFn() -> std::net::SocketAddr, expected: &[Verdict]) {
    for number in [1, 20, 200] {
        for method in [Method::GET, Method::POST] {
            for error in crowd(client, number, &method, server().await).await {
                let verdict = verdict_of_error(&*error);
                let right = verdict.is_some_and(|verdict| expected.contains(&verdict));
                assert!(right, "{number} × {method}: {verdict:?} of {error:?}");
            }
        }
    }
}

// trap 45
#[tokio::test]
async fn crowd_refused_is_not_connected() {
    assert_all(&http2_client(), refused, &[NOT_CONNECTED]).await;
    #[cfg(feature = "reqwest")]
    assert_all(&reqwest_client(), refused, &[NOT_CONNECTED]).await;
}

/// Only a call that opened no connection itself waited in vain.
// TR-1, trap 45
#[tokio::test]
async fn crowd_behind_refused_call_waited() {
    let server = refused().await;
    let errors = crowd(&http2_client(), 20, &Method::GET, server).await;
    let waited = errors.iter().filter(|error| undone(&***error) == Some(Undone::NoConnection)).count();
    let opened = errors.iter().filter(|error| undone(&***error).is_none()).count();
    assert!(waited > 0 && opened > 0 && waited + opened == 20, "{waited} waited, {opened} opened");
}

/// Sends half of a frame header and then ends the connection in order.
async fn ends_in_a_frame() -> std::net::SocketAddr {
    serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        connection.write_all(&[0, 0, 9, 0]).await.unwrap();
        connection.shutdown().await.unwrap();
        read_on(&mut connection).await;
    })
    .await
}

// trap 45
#[tokio::test]
async fn crowd_fin_in_a_frame_is_lost() {
    assert_all(&http2_client(), ends_in_a_frame, &[LOST, NOT_CONNECTED]).await;
    #[cfg(feature = "reqwest")]
    assert_all(&reqwest_client(), ends_in_a_frame, &[LOST, NOT_CONNECTED]).await;
}

/// Allows one stream at a time, and then ends the connection in order: all other requests are parked.
async fn ends_with_parked_requests() -> std::net::SocketAddr {
    serve(async |mut connection| {
        let max_concurrent_streams = [0, 3, 0, 0, 0, 1];
        write_frame(&mut connection, SETTINGS, 0, 0, &max_concurrent_streams).await;
        read_http2_headers(&mut connection).await;
        connection.shutdown().await.unwrap();
        read_on(&mut connection).await;
    })
    .await
}

// trap 45
#[tokio::test]
async fn crowd_parked_requests_are_lost() {
    assert_all(&http2_client(), ends_with_parked_requests, &[LOST, NOT_CONNECTED]).await;
    #[cfg(feature = "reqwest")]
    assert_all(&reqwest_client(), ends_with_parked_requests, &[LOST, NOT_CONNECTED]).await;
}

/// hyper reports this error with `is_user()`, as it does a failure of the caller's body.
// trap 45
#[tokio::test]
async fn dispatch_task_that_died_is_lost() {
    let (client, _server) = tokio::io::duplex(1024);
    let (mut sender, connection) = conn::http1::handshake::<_, Body>(TokioIo::new(client)).await.unwrap();
    let connection = tokio::spawn(connection);
    let call = tokio::spawn(sender.send_request(get("/")));
    tokio::task::yield_now().await;
    connection.abort();
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is_user(), "{error:?}");
    assert_eq!(verdict_of_error(&error), Some(LOST), "{error:?}");
    assert_ne!(fault_of_error(&error), Some(Fault::Caller), "{error:?}");
}

/// A panic in a body ends the connection's task.
// trap 24
#[tokio::test]
async fn dispatch_task_panicked_is_permanent() {
    let (client, _server) = tokio::io::duplex(1024);
    let (mut sender, connection) = conn::http1::handshake::<_, Body>(TokioIo::new(client)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::post("/").body(Fails(|| panic!("a bug of the caller's own")).boxed()).unwrap();
    let error = sender.send_request(request).await.unwrap_err();
    assert!(error.is_user(), "{error:?}");
    assert_eq!(verdict_of_error(&error), Some(Verdict::Permanent), "{error:?}");
    assert_eq!(fault_of_error(&error), Some(Fault::Caller), "{error:?}");
}

/// Errors without a type or predicate are recognised by these texts, in these versions. If a new version fails here,
/// read its source before changing the version.
#[tokio::test]
async fn texts_are_those_of_these_versions() {
    let lock = include_str!("../../../../../Cargo.lock");
    for (name, version) in [("hyper", "1.12.0"), ("hyper-util", "0.1.21"), ("tokio-util", "0.7.20")] {
        let entry = format!("name = \"{name}\"\nversion = \"{version}\"\n");
        assert!(lock.contains(&entry), "{name} {version}");
    }
    let texts = async |server: std::net::SocketAddr| {
        let errors = crowd(&http2_client(), 200, &Method::GET, server).await;
        let chain = |error: &dyn Error| {
            let mut texts = error.to_string();
            let mut source = error.source();
            while let Some(error) = source {
                texts = format!("{texts}: {error}");
                source = error.source();
            }
            texts
        };
        errors.iter().map(|error| chain(&**error)).collect::<std::collections::BTreeSet<_>>()
    };
    let parked = texts(ends_with_parked_requests().await).await;
    let gone = "client error (SendRequest): dispatch task is gone: runtime dropped the dispatch task";
    assert!(parked.contains(gone), "{parked:?}");
    let cut = texts(ends_in_a_frame().await).await;
    let cut_off = "client error (SendRequest): connection error: bytes remaining on stream";
    assert!(cut.contains(cut_off), "{cut:?}");
}
