//! Tests of a fallback inside another layer of this crate: its outcome is not proof that a request was not processed.

use std::io::ErrorKind::{self, ConnectionRefused, ConnectionReset};

use bytes::Bytes;
use http::{HeaderValue, Request, Response};
use http_body_util::BodyExt;
use reattempt::body::ReplayLimits;
use reattempt::classify::IDEMPOTENCY_KEY;
use reattempt::fallback::{Backup, BackupFailed, FallbackLayer};
use reattempt::guard::{GuardLayer, Refused};
use reattempt::schedule::Constant;
use reattempt::{Http, ReplayBody, RetryLayer, RetryPolicy, Verdict};
use reattempt_testing_layers::calls::{Act, Answer, Body, ONE, Server, ms, policy, request};
use reattempt_testing_layers::guard::{Recorder, refused};
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, ServiceBuilder, ServiceExt};

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

/// Returns a client that a guard refuses for 99 ms.
fn refusing() -> Client {
    let recorder = Recorder::default();
    recorder.refuse(refused().after(ms(99)));
    let client = GuardLayer::http(recorder).layer(client(&Server::statuses([200])));
    Client::new(client.map_response(|response: Response<_>| response.map(BodyExt::boxed)))
}

/// Returns the number of attempts at a server that refuses, and their outcome, with a retry layer around the server and
/// its backup.
async fn retried(method: &str, backup: Client) -> (usize, Result<Answer, BoxError>) {
    let server = Server::statuses([429]);
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy().boxed_errors()))
        // An attempt's body is not `Clone`. Those of this test are empty.
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
        // The server is called again, and then its backup.
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

/// The server may have carried out the request, and the function's status is not the server's.
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

fn keyed() -> Request<Body> {
    let mut request = request("POST", ONE, "pay");
    request.headers_mut().insert(IDEMPOTENCY_KEY, HeaderValue::from_static("one"));
    request
}

/// Returns the number of calls to a backup around a retry layer whose attempts have these outcomes.
async fn backed_up(acts: &'static [fn() -> Act], http: Http, request: Request<Body>) -> usize {
    let server = Server::by(|arrival, _| acts[arrival - 1]());
    let backup = Server::statuses([200]);
    let policy = RetryPolicy::with(http.clone()).backoff(Constant::new(ms(1)));
    let retried = RetryLayer::new(policy.boxed_errors()).layer(server.clone());
    let client = FallbackLayer::with(http, Backup::new(client(&backup))).layer(retried);
    let _ = client.oneshot(request).await;
    assert_eq!(server.count(), acts.len());
    backup.count()
}

/// The last attempt was refused, but the one before it may have been processed. A key makes that safe only for one
/// server.
// trap 49
#[tokio::test(start_paused = true)]
async fn proof_of_last_attempt_is_not_the_calls() {
    let follows_none = || Http::new().redirects_below(false);
    let generated = || follows_none().generate_idempotency_keys(true);
    for (acts, backups) in [
        (&[|| Act::from(503), || 503.into(), || 429.into()] as &'static [fn() -> Act], 0),
        (&[|| Act::from(503), || 429.into(), || 429.into()], 0),
        (&[|| ConnectionReset.into(), || 429.into(), || ConnectionRefused.into()], 0),
        (&[|| Act::from(429), || 429.into(), || 429.into()], 1),
        (&[|| Act::from(429), || ConnectionRefused.into(), || ConnectionRefused.into()], 1),
    ] {
        assert_eq!(backed_up(acts, follows_none(), keyed()).await, backups);
        assert_eq!(backed_up(acts, generated(), request("POST", ONE, "pay")).await, backups);
    }
}

/// With tower's own middleware, the last attempt's proof does not apply to the whole call either.
// trap 49
#[tokio::test(start_paused = true)]
async fn last_stock_attempt_is_not_the_call() {
    let replayable = |request: Request<Body>| request.map(|body| ReplayBody::new(body, &ReplayLimits::default()));
    for (statuses, backups) in [([503, 429], 0), ([429, 429], 1)] {
        let (server, backup) = (Server::statuses(statuses), Server::statuses([200]));
        let retried = ServiceBuilder::new()
            .map_request(replayable)
            .retry(policy().max_attempts(2).stock())
            .service(server.clone());
        let client = FallbackLayer::backup(client(&backup)).layer(retried);
        client.oneshot(keyed()).await.unwrap();
        assert_eq!((server.count(), backup.count()), (2, backups), "{statuses:?}");
    }
}

/// A key no longer counts once a backup may have processed the request. A later attempt of a retry layer outside is not
/// proof for the backup.
// trap 49
#[tokio::test(start_paused = true)]
async fn key_belongs_to_one_server() {
    for (statuses, backups, calls) in [([429, 200], 1, 1), ([503, 429], 0, 3)] {
        let (server, backup) = (Server::statuses(statuses), Server::statuses([503]));
        let client = ServiceBuilder::new()
            .layer(RetryLayer::new(policy().boxed_errors()))
            .map_request(|attempt: Request<ReplayBody<Body>>| attempt.map(|_| Body::default()))
            .service(backed(client(&server), client(&backup)));
        client.oneshot(keyed()).await.unwrap();
        assert_eq!((backup.count(), server.count()), (backups, calls), "{statuses:?}");
    }
}

/// For cloned requests the classifier decides, even if the error chain contains a refusal.
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
