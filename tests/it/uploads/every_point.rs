//! An upload of 5 MB whose connection breaks at each of 64 points, over HTTP/1 and HTTP/2, with and without TLS.

use std::time::Duration;

use http::{HeaderValue, Request, Response};
use hyper::body::Incoming;
use hyper_util::client::legacy::Error;
use reattempt::RetryLayer;
use reattempt::body::UploadBody;
use reattempt_faults::{Arrival, Break, Faults, Http2, Reply, Script, Server, Tls, WireFault};
use tokio::time::timeout;
use tower::{Layer, Service, ServiceExt};

use super::{TestFile, Uploading, plain, request, secure};
use crate::support::quick;

const LENGTH: usize = 5 * 1000 * 1000;

/// Longer than the head and the handshake, which end before it.
const FIRST: u64 = 4 * 1024;

/// Reached only by a hanging test.
const HANGS: Duration = Duration::from_secs(30);

/// The number of bytes that the client writes before the break at each point. At the last point, the whole upload has
/// arrived and the answer is lost.
fn points() -> impl Iterator<Item = u64> {
    (0..64).map(|point| FIRST + point * (LENGTH as u64 - FIRST) / 63)
}

/// Breaks the first connection of a call at this point.
async fn broken<S>(server: &Server, client: S, after: u64, mut request: Request<UploadBody>) -> (bool, Vec<Arrival>)
where
    S: Service<Request<Uploading>, Response = Response<Incoming>, Error = Error> + Clone,
{
    let faults = Faults::<WireFault>::new(Script::new([WireFault::write(after, Break::Reset)]));
    let relay = faults.relay(server.address()).await.unwrap();
    let url = server.url("/file").replace(&server.address().port().to_string(), &relay.address().port().to_string());
    *request.uri_mut() = url.parse().unwrap();
    let outcome = timeout(HANGS, RetryLayer::new(quick()).layer(client).oneshot(request)).await.unwrap();
    let arrivals = server.ledger().arrivals();
    server.ledger().no_unsafe_repeat().bodies_intact();
    (outcome.is_ok_and(|response| response.status() == 200), arrivals)
}

/// A PUT and a POST with a key arrive whole with equal bytes. A POST without a key is never sent again once a byte of
/// it may have been processed.
async fn each_point<S, Starting>(start: impl Fn() -> Starting, client: impl Fn() -> S)
where
    S: Service<Request<Uploading>, Response = Response<Incoming>, Error = Error> + Clone,
    Starting: Future<Output = Server>,
{
    let file = TestFile::new(LENGTH);
    for (number, after) in points().enumerate() {
        let server = start().await;
        let method = if number % 2 == 0 { "PUT" } else { "POST" };
        let mut safe = request(method, "/", file.upload().await);
        if method == "POST" {
            safe.headers_mut().insert("idempotency-key", HeaderValue::from_static("one"));
        }
        let (good, arrivals) = broken(&server, client(), after, safe).await;
        assert!(good, "{method} at {after}");
        // A reset discards what the server has not read yet, so it may not have seen the first attempt.
        file.assert_arrived(&arrivals, arrivals.len());
        assert!(arrivals.len() <= 2 && (number == 63 || server.ledger().connections() == 2), "{method} at {after}");

        let server = start().await;
        let (good, arrivals) = broken(&server, client(), after, request("POST", "/", file.upload().await)).await;
        assert!(arrivals.len() <= 1 && (!good || number == 63), "keyless at {after}");
        assert_eq!(server.ledger().connections(), 1, "keyless at {after}");
    }
}

fn any() -> Script<Reply> {
    Script::default()
}

// field 30
#[tokio::test]
async fn http1_upload_survives_each_point() {
    each_point(|| async { Server::http1(any()).await.unwrap() }, || plain(false)).await;
}

// field 30
#[tokio::test]
async fn http2_upload_survives_each_point() {
    each_point(|| async { Server::http2(any()).await.unwrap() }, || plain(true)).await;
}

// field 30
#[tokio::test]
async fn http1_tls_upload_survives_each_point() {
    let tls = Tls::new().unwrap();
    each_point(|| async { Server::http1_tls(&tls, any()).await.unwrap() }, || secure(&tls, false)).await;
}

// field 30
#[tokio::test]
async fn http2_tls_upload_survives_each_point() {
    let tls = Tls::new().unwrap();
    let server = || async { Server::http2_tls(&tls, Http2::default(), any()).await.unwrap() };
    each_point(server, || secure(&tls, true)).await;
}
