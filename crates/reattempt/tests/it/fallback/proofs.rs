//! A fallback inside another layer of this crate: its outcome proves nothing about a request.

use std::io::ErrorKind::{self, ConnectionRefused, ConnectionReset};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use reattempt::fallback::{BackupFailed, FallbackLayer};
use reattempt::guard::{GuardLayer, Refused};
use reattempt::{ReplayBody, RetryLayer, RetryPolicy, Verdict};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt};

use crate::calls::support::{Act, Answer, Body, ONE, Server, ms, policy, request};
use crate::guard::support::{Recorder, refused};

type Client = BoxCloneSyncService<Request<Body>, Answer, BoxError>;

fn client(server: &Server) -> Client {
    let client = ServiceBuilder::new()
        .map_request(|request: Request<Body>| request.map(ReplayBody::passthrough))
        .map_err(BoxError::from)
        .service(server.clone());
    Client::new(client)
}

/// A client with a backup.
fn backed(server: Client, backup: Client) -> Client {
    let client = FallbackLayer::backup(backup).layer(server);
    Client::new(client.map_response(|response: Response<_>| response.map(BodyExt::boxed)))
}

/// A client that a guard refuses for 99 ms.
fn refusing() -> Client {
    let recorder = Recorder::default();
    recorder.refuse(refused().after(ms(99)));
    let client = GuardLayer::http(recorder).layer(client(&Server::statuses([200])));
    Client::new(client.map_response(|response: Response<_>| response.map(BodyExt::boxed)))
}

/// Returns the number of attempts at a server that refuses, and their outcome, with a retry layer around it and its
/// backup.
async fn retried(method: &str, backup: Client) -> (usize, Result<Answer, BoxError>) {
    let server = Server::statuses([429]);
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy().boxed_errors()))
        // The body of an attempt is not `Clone`. Those of this test are empty.
        .map_request(|attempt: Request<ReplayBody<Body>>| attempt.map(|_| Body::default()))
        .service(backed(client(&server), backup));
    let ended = client.oneshot(request(method, ONE, "")).await;
    (server.count(), ended)
}

// trap 49
#[tokio::test(start_paused = true)]
async fn outcome_of_a_backup_is_no_proof() {
    let by = |act: fn() -> Act| client(&Server::by(move |_, _| act()));
    for (status, backup) in [
        (Some(429), by(|| 429.into())),
        (Some(503), by(|| 503.into())),
        (None, by(|| ConnectionReset.into())),
        (None, by(|| ConnectionRefused.into())),
        (None, refusing()),
    ] {
        let (sent, ended) = retried("POST", backup.clone()).await;
        assert_eq!(sent, 1, "{status:?}");
        match (status, ended) {
            (Some(status), ended) => assert_eq!(ended.unwrap().status(), status),
            (None, ended) => assert!(ended.unwrap_err().is::<BackupFailed>()),
        }
        // The server is called again, and its backup after it.
        let (sent, _) = retried("GET", backup).await;
        assert!(sent > 1, "{status:?}");
    }
}

// trap 49
#[tokio::test(start_paused = true)]
async fn outcome_of_a_backup_has_no_other_backup() {
    for act in [|| Act::from(429), || ErrorKind::ConnectionReset.into()] {
        let (server, backup) = (Server::statuses([429]), Server::by(move |_, _| act()));
        let last = Server::statuses([200]);
        let inner = backed(client(&server), client(&backup));
        let outer = backed(inner, client(&last));
        let _ = outer.oneshot(request("POST", ONE, "pay")).await;
        assert_eq!((server.count(), backup.count(), last.count()), (1, 1, 0));
    }
}

/// The server may have carried the request out. The function's status is not the server's.
// trap 49
#[tokio::test(start_paused = true)]
async fn status_of_a_function_is_no_proof() {
    let server = Server::by(|_, _| ConnectionReset.into());
    let busy = |_: &_| Response::builder().status(429).body(Bytes::new()).ok();
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy().boxed_errors()))
        .layer(FallbackLayer::http(busy))
        .service(server.clone());
    let answer = client.oneshot(request("POST", ONE, "pay")).await.unwrap();
    assert_eq!((answer.status().as_u16(), server.count()), (429, 1));
}

/// A classifier of requests that are cloned decides, although the chain has a refusal.
// trap 49
#[tokio::test(start_paused = true)]
async fn cloned_request_follows_its_classifier() {
    for (verdict, count) in [(Verdict::Permanent, 1), (Verdict::transient(), 4)] {
        let server = Server::statuses([429]);
        let below = backed(client(&server), refusing());
        let policy = RetryPolicy::cloned(move |outcome: Result<&Answer, _>| match outcome {
            Ok(_) => Verdict::Success,
            Err(_) => verdict,
        });
        let client = RetryLayer::new(policy.boxed_errors()).layer(below);
        let error = client.oneshot(request("PUT", ONE, "pay")).await.unwrap_err();
        assert!(!error.is::<Refused>());
        assert_eq!(server.count(), count);
    }
}
