//! Tests of bodies that are opened again for a retry: what the call returns if that fails, and what is sent.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use reattempt::body::{UploadBody, UploadError};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::report::ReportSlot;
use reattempt::{ReplayBody, RetryLayer};
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
    assert_eq!((bodies, opened.load(Ordering::Relaxed)), (vec![Bytes::from(BOOK); 3], 3));
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

/// The first attempt's body is the caller's own, so its failure is permanent.
#[tokio::test(start_paused = true)]
async fn first_opening_that_fails_is_permanent() {
    let client = tower::service_fn(async |request: Request<ReplayBody<UploadBody>>| {
        let read = request.into_body().collect().await.map_err(io::Error::other);
        read.map(|_| Response::new(Full::<Bytes>::default()))
    });
    let body = UploadBody::new(3, || async { Err::<Full<Bytes>, _>(io::Error::other("gone")) });
    let slot = ReportSlot::default();
    let mut request = put(body);
    request.extensions_mut().insert(options().report_to(&slot));
    let error = RetryLayer::new(policy()).layer(client).oneshot(request).await.unwrap_err();
    assert_eq!(error.get_ref().unwrap().source().unwrap().to_string(), "the body could not be opened: gone");
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::Permanent);
}

/// Both attempts are in flight, each with a body of its own.
#[tokio::test(start_paused = true)]
async fn hedge_opens_its_own_body() {
    let client = tower::service_fn(async |request: Request<ReplayBody<UploadBody>>| {
        let read = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, io::Error>(Response::new(Full::<Bytes>::from(read)))
    });
    let policy = HedgePolicy::http().delay(Duration::from_millis(10));
    let (body, opened) = upload(book);
    let mut request = put(body);
    request.extensions_mut().insert(options().repeatable(true));
    let response = HedgeLayer::new(policy).layer(client).oneshot(request).await.unwrap();
    assert_eq!(
        (response.into_body().collect().await.unwrap().to_bytes(), opened.load(Ordering::Relaxed)),
        (BOOK.into(), 2)
    );
}

/// A hedge whose body cannot be opened does not end the call while another attempt is in flight.
#[tokio::test(start_paused = true)]
async fn hedge_that_cannot_open_ends_nothing() {
    let client = tower::service_fn(async |request: Request<ReplayBody<UploadBody>>| {
        let read = request.into_body().collect().await.map_err(io::Error::other)?.to_bytes();
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok::<_, io::Error>(Response::new(Full::<Bytes>::from(read)))
    });
    let policy = HedgePolicy::http().delay(Duration::from_millis(10));
    let mut request = put(upload(|| async { Err(io::Error::other("gone")) }).0);
    request.extensions_mut().insert(options().repeatable(true));
    let response = HedgeLayer::new(policy).layer(client).oneshot(request).await.unwrap();
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), BOOK);
}
