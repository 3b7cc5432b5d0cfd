//! Tests of bodies that are opened again for a retry: what the call returns if that fails, and what is sent.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use reattempt::body::{UploadBody, UploadError};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::report::ReportSlot;
use reattempt::{RetryLayer, RetryPolicy};
use reattempt_core::StopReason;
use reattempt_replay::{ReplayLimits, ReplayMemory};
use tower::{BoxError, Layer, ServiceExt};

use crate::calls::support::{ONE, Server, options, policy, report_of};

const BOOK: &str = "a book of many pages";

/// Returns an upload whose openings after the first one do what `again` does.
fn upload<Fut>(again: impl Fn() -> Fut + Send + Sync + 'static) -> (UploadBody, Arc<AtomicU32>)
where
    Fut: Future<Output = io::Result<Full<Bytes>>> + Send + 'static,
{
    let opened = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&opened);
    let body = UploadBody::new(BOOK.len() as u64, move || {
        let later = (count.fetch_add(1, Ordering::Relaxed) > 0).then(&again);
        async move {
            match later {
                Some(later) => later.await,
                None => Ok(Full::from(BOOK)),
            }
        }
    });
    (body, opened)
}

async fn book() -> io::Result<Full<Bytes>> {
    Ok(Full::from(BOOK))
}

fn put<B>(body: B) -> Request<B> {
    Request::put(ONE).body(body).unwrap()
}

/// The body is larger than the limits, and is sent whole each time.
// field 30, trap 04
#[tokio::test(start_paused = true)]
async fn upload_is_opened_for_each_attempt() {
    let server = Server::statuses([503, 503, 200]);
    let limits = ReplayLimits::default().per_call(0).memory(ReplayMemory::new(0));
    let (body, opened) = upload(book);
    let client = RetryLayer::new(policy().protocol(|http| http.replay(limits))).layer(server.clone());
    let response = client.oneshot(put(body)).await.unwrap();
    assert_eq!(response.status(), 200);
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body.unwrap()).collect();
    assert_eq!((bodies, opened.load(Ordering::Relaxed)), (vec![BOOK.to_owned(); 3], 3));
}

#[tokio::test(start_paused = true)]
async fn boxed_upload_is_opened_again() {
    let server = Server::statuses([503, 200]);
    let body: BoxBody<Bytes, BoxError> = upload(book).0.map_err(Into::into).boxed();
    let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(put(body)).await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (200, 2));
}

/// The call ends with the server's last response, which was not drained, and the report has the error.
// field 30
#[tokio::test(start_paused = true)]
async fn failed_opening_ends_with_last_outcome() {
    let server = Server::statuses([503]);
    let (body, opened) = upload(|| async { Err(io::Error::other("no such key")) });
    let client = RetryLayer::new(policy()).layer(server.clone());
    let response = client.oneshot(put(body)).await.unwrap();
    assert_eq!(response.status(), 503);
    let report = report_of(&response).clone();
    assert_eq!(report.stop_reason(), StopReason::BodyNotOpened);
    assert!(matches!(report.upload_error(), Some(UploadError::Open(_))));
    assert_eq!(
        report.to_string(),
        "attempt 1 at 0s: server (503)\n\
         stopped: the request body could not be opened again: the body could not be opened: no such key"
    );
    assert_eq!((server.seen().len(), opened.load(Ordering::Relaxed), report.retries()), (1, 2, 0));
}

#[tokio::test(start_paused = true)]
async fn other_length_ends_with_last_outcome() {
    let server = Server::statuses([503]);
    let body = upload(|| async { Ok(Full::from("a leaf")) }).0;
    let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(put(body)).await.unwrap();
    let error = report_of(&response).upload_error().unwrap().to_string();
    assert_eq!((response.status().as_u16(), server.seen().len()), (503, 1));
    assert_eq!(error, "the opened body has 6 bytes instead of 20");
}

#[tokio::test(start_paused = true)]
async fn hanging_opening_ends_after_its_limit() {
    for (limit, body) in
        [(10, upload(std::future::pending).0), (2, upload(std::future::pending).0.open_within(Duration::from_secs(2)))]
    {
        let server = Server::statuses([503]);
        let started = tokio::time::Instant::now();
        let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(put(body)).await.unwrap();
        let error = report_of(&response).upload_error().unwrap().to_string();
        assert_eq!((response.status().as_u16(), started.elapsed().as_secs()), (503, limit));
        assert_eq!(error, format!("the body was not open after {limit}s"));
    }
}

/// The limit on elapsed time is shorter than the one for the opening.
#[tokio::test(start_paused = true)]
async fn elapsed_limit_ends_a_hanging_opening() {
    let started = tokio::time::Instant::now();
    let policy = policy().max_elapsed(Duration::from_secs(5));
    let client = RetryLayer::new(policy).layer(Server::statuses([503]));
    let response = client.oneshot(put(upload(std::future::pending).0)).await.unwrap();
    assert_eq!((response.status().as_u16(), started.elapsed().as_secs()), (503, 5));
}

/// The permit of a retry that was not sent is returned, so the next call may retry.
#[tokio::test(start_paused = true)]
async fn failed_opening_costs_no_token() {
    let client = RetryLayer::new(policy()).layer(Server::statuses([503; 40]));
    for _ in 0..30 {
        let body = upload(|| async { Err(io::Error::other("gone")) }).0;
        let response = client.clone().oneshot(put(body)).await.unwrap();
        assert_ne!(report_of(&response).stop_reason(), StopReason::Succeeded);
    }
}

/// A keyless POST that may have been processed is not sent again, although its body could be opened.
#[tokio::test(start_paused = true)]
async fn keyless_post_is_not_sent_again() {
    let server = Server::statuses([503]);
    let (body, opened) = upload(book);
    let request = Request::post(ONE).body(body).unwrap();
    let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!(report_of(&response).stop_reason(), StopReason::NotRepeatable);
    assert_eq!((server.seen().len(), opened.load(Ordering::Relaxed)), (1, 1));
}

/// The first attempt's body is the caller's own: if it cannot be opened, nothing was sent.
#[tokio::test(start_paused = true)]
async fn first_opening_that_fails_is_permanent() {
    let server = Server::statuses([200]);
    let body = UploadBody::new(3, || async { Err::<Full<Bytes>, _>(io::Error::other("gone")) });
    let slot = ReportSlot::default();
    let mut request = put(body);
    request.extensions_mut().insert(options().report_to(&slot));
    let outcome = RetryLayer::new(RetryPolicy::http()).layer(server).oneshot(request).await;
    assert!(outcome.is_err() || slot.take().is_some());
}

#[tokio::test(start_paused = true)]
async fn hedge_opens_its_own_body() {
    let server = Server::statuses([503, 200]);
    let policy = HedgePolicy::http().delay(Duration::from_millis(10));
    let (body, opened) = upload(book);
    let response = HedgeLayer::new(policy).layer(server.clone()).oneshot(put(body)).await.unwrap();
    assert_eq!((response.status().as_u16(), opened.load(Ordering::Relaxed)), (200, 2));
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body.unwrap()).collect();
    assert_eq!(bodies, [BOOK; 2]);
}
