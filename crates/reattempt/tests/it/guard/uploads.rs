//! Tests of uploads whose time runs out while their caller sends nothing, or while the server reads nothing.

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use reattempt::endpoints::Endpoints;
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{Bulkhead, CircuitBreaker, GuardLayer};
use reattempt::hedge::HedgePolicy;
use reattempt::standard::StandardLayer;
use reattempt::{RetryBudget, RetryLayer, RetryPolicy, TimedOut};
use reattempt_testing::secs;
use tokio::task::JoinSet;
use tower::{Layer, ServiceExt, service_fn};

use super::support::Recorder;
use crate::calls::support::{Act, AnswerBody, FedBody, ONE, Server, TWO, fed, ms, policy};

/// Returns an upload that sends one byte and then nothing for as long as the sender exists.
fn stalled() -> (tokio::sync::mpsc::UnboundedSender<Bytes>, Request<FedBody>) {
    let (sender, body) = fed();
    sender.send(Bytes::from_static(b"1")).unwrap();
    let request = Request::put(ONE).header("content-length", 10).body(body).unwrap();
    (sender, request)
}

/// An upload through a streamed body, beside ordinary calls.
macro_rules! uploads_beside_calls {
    ($client:expr) => {{
        let client = $client;
        let mut uploads = JoinSet::new();
        for _ in 0..22 {
            let (client, (sender, upload)) = (client.clone(), stalled());
            uploads.spawn(async move {
                let ended = client.send(upload).await;
                drop(sender);
                ended.is_err()
            });
        }
        let mut served = 0;
        for _ in 0..20 {
            tokio::time::sleep(ms(500)).await;
            // The same type of body, but one that ends.
            let (sender, body) = fed();
            drop(sender);
            let call = Request::get(ONE).body(body).unwrap();
            served += usize::from(client.send(call).await.is_ok_and(|response| response.status() == 200));
        }
        let failed = uploads.join_all().await.into_iter().filter(|failed| *failed).count();
        (served, failed)
    }};
}

/// A server that answers once it has the whole body.
fn server() -> Server {
    Server::by(|_, _| Act::from(200).later(ms(10)))
}

fn breaker() -> CircuitBreaker {
    CircuitBreaker::rate().seed(1)
}

/// Uploads that their callers do not send are no evidence against the server.
// C-11, trap 61, field 08
#[tokio::test(start_paused = true)]
async fn pending_uploads_do_not_open_breaker() {
    let breaker = breaker();
    let stack = StandardLayer::http().limits(breaker.clone(), Bulkhead::new(64)).attempt_timeout(secs(1));
    let retried = stack.clone().layer(server());
    assert_eq!(uploads_beside_calls!(retried), (20, 22), "retries");
    let hedges = HedgePolicy::http().delay(ms(500)).boxed_errors();
    assert_eq!(uploads_beside_calls!(stack.hedge(hedges).layer(server())), (20, 22), "hedges");
    assert_eq!(breaker.counts("one.example").total_failures, 0);
}

/// The limit of the retry layer sees the upload, too, and so does the total time of a call.
// C-11, trap 61
#[tokio::test(start_paused = true)]
async fn outer_limits_see_a_pending_upload() {
    for total in [false, true] {
        let recorder = Recorder::default();
        let (_sender, upload) = stalled();
        let guarded = GuardLayer::http(recorder.clone()).layer(server());
        let error = if total {
            let policy = RetryPolicy::http().boxed_errors();
            let stack = StandardLayer::http().retry(policy).guards(recorder.clone());
            let stack = stack.total_time(secs(2)).attempt_timeout(ms(1_999));
            let error = stack.layer(server()).send(upload).await.unwrap_err();
            assert_eq!(recorder.log()[..2], ["admitted", "Ignored"]);
            error
        } else {
            let retries = RetryLayer::new(policy().max_attempts(1).attempt_timeout(secs(1)));
            let error = retries.layer(guarded).send(upload).await.unwrap_err();
            assert_eq!(recorder.log(), ["admitted", "Ignored"]);
            error
        };
        let timed_out = error.downcast_ref::<TimedOut>().unwrap();
        assert!(timed_out.is_upload_pending(), "{error}");
        assert!(error.to_string().contains("while the request body was pending"), "{error}");
    }
}

/// A server that does not answer after the whole upload, or does not read it, is at fault.
// C-11
#[tokio::test(start_paused = true)]
async fn sent_or_unread_upload_is_servers_time() {
    let recorder = Recorder::default();
    let stack = StandardLayer::http().guards(recorder.clone()).attempt_timeout(secs(1));
    let client = stack.clone().layer(Server::by(|_, _| Act::Hang));
    let (sender, upload) = stalled();
    drop(sender);
    let error = client.send(upload).await.unwrap_err();
    assert!(!error.downcast_ref::<TimedOut>().unwrap().is_upload_pending());

    let unread = tower::service_fn(|request: Request<reattempt::ReplayBody<FedBody>>| async move {
        let mut body = std::pin::pin!(request.into_body());
        // The first frame fills the window that the server grants.
        body.frame().await.unwrap().unwrap();
        std::future::pending::<Result<http::Response<AnswerBody>, std::io::Error>>().await
    });
    let (_sender, upload) = stalled();
    stack.layer(unread).send(upload).await.unwrap_err();
    assert!(recorder.log().iter().all(|line| matches!(&**line, "admitted" | "Unavailable")), "{:?}", recorder.log());
}

/// Reads a body to its end, and never answers.
async fn read<B: http_body::Body, R>(body: B) -> Result<R, std::io::Error> {
    let _ = body.collect().await;
    std::future::pending().await
}

/// The bodies of reqwest are watched too, whether the call may be retried or not.
// C-11
#[tokio::test(start_paused = true)]
async fn reqwest_uploads_are_the_callers_time() {
    for attempts in [1, 3] {
        let (recorder, (_sender, upload)) = (Recorder::default(), stalled());
        let server = service_fn(|mut request: reqwest::Request| {
            read::<_, reqwest::Response>(request.body_mut().take().unwrap_or_default())
        });
        let retries = RetryLayer::new(policy().max_attempts(attempts).attempt_timeout(secs(1)));
        let client = retries.layer(GuardLayer::http(recorder.clone()).layer(server));
        let upload = upload.map(reqwest::Body::wrap).try_into().unwrap();
        let upload: reqwest::Request = upload;
        client.oneshot(upload).await.unwrap_err();
        assert_eq!(recorder.log(), ["admitted", "Ignored"].repeat(attempts as usize));
    }
}

/// So are the messages that a gRPC client streams.
// C-11
#[cfg(feature = "tonic")]
#[tokio::test(start_paused = true)]
async fn tonic_streams_are_the_callers_time() {
    for attempts in [1, 3] {
        let (recorder, (_sender, upload)) = (Recorder::default(), stalled());
        let server = service_fn(|request: Request<tonic::body::Body>| {
            read::<_, http::Response<AnswerBody>>(request.into_body())
        });
        let retries = RetryPolicy::grpc().repeatable(true).max_attempts(attempts).attempt_timeout(secs(1)).seed(1);
        let client = RetryLayer::new(retries).layer(GuardLayer::grpc(recorder.clone()).layer(server));
        let error = client.oneshot(upload.map(tonic::body::Body::new)).await.unwrap_err();
        assert!(error.downcast_ref::<TimedOut>().unwrap().is_upload_pending(), "{error}");
        assert_eq!(recorder.log(), ["admitted", "Ignored"].repeat(attempts as usize));
    }
}

/// Endpoints are not ejected, and the budget has no doubt that would refuse the retries of others.
// C-11, trap 61
#[tokio::test(start_paused = true)]
async fn pending_uploads_leave_others_alone() {
    let budget = RetryBudget::cautious();
    let retries = RetryPolicy::http().budget(budget.clone()).boxed_errors().seed(1);
    let servers = Endpoints::urls([ONE, TWO]).unwrap();
    let layer = StandardLayer::http().retry(retries).attempt_timeout(secs(1)).endpoints(servers);
    let endpoints = layer.endpoints_handle();
    let client = layer.layer(server());
    assert_eq!(uploads_beside_calls!(client), (20, 22));
    assert!(endpoints.view().iter().all(|endpoint| endpoint.out.is_none() && endpoint.failing == 0.0));
    let settings = format!("{budget:?}");
    assert!(!settings.contains("doubt: 1"), "{settings}");
}

/// An upload in memory is not watched, even behind a type that could stream.
#[test]
fn memory_bodies_have_no_source() {
    let limits = reattempt::body::ReplayLimits::default()
        .in_memory::<http_body_util::combinators::BoxBody<Bytes, std::convert::Infallible>>();
    let boxed = Full::new(Bytes::from_static(b"hello")).boxed();
    assert!(reattempt::ReplayBody::new(boxed, &limits).watch_source().is_none());
    let limits = reattempt::body::ReplayLimits::default();
    assert!(reattempt::ReplayBody::new(Full::<Bytes>::from("hello"), &limits).watch_source().is_none());
    assert!(reattempt::ReplayBody::new(fed().1, &limits).watch_source().is_some());
}
