//! Tests of defects found by trying to break the library.

use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::{BodyExt, Empty};
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, RetryLayer, RetryPolicy};
use reattempt_core::{StopReason, Unlimited};
use reattempt_replay::{ReplayBody, ReplayLimits};
use reattempt_schedule_fixed::Constant;
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::regressions::support::{get, of_frames};

/// A body with three frames, the second of which panics.
#[derive(Clone, Default)]
struct Panics {
    polled: Arc<AtomicUsize>,
}

impl Body for Panics {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.polled.fetch_add(1, Ordering::Relaxed) {
            0 => Poll::Ready(Some(Ok(Frame::data(Bytes::from("one "))))),
            1 => panic!("on purpose"),
            2 => Poll::Ready(Some(Ok(Frame::data(Bytes::from("three"))))),
            _ => Poll::Ready(None),
        }
    }
}

#[tokio::test]
async fn panicked_body_is_never_sent_with_hole() {
    let source = Panics::default();
    let mut first = ReplayBody::new(source.clone(), &ReplayLimits::default());
    let kept = first.try_clone().unwrap();
    let mut context = Context::from_waker(Waker::noop());
    assert!(Pin::new(&mut first).poll_frame(&mut context).is_ready());
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let _ = Pin::new(&mut first).poll_frame(&mut Context::from_waker(Waker::noop()));
    }));
    assert!(panicked.is_err());
    drop(first);

    assert!(kept.source_failed(), "no retry is made of it");
    let error = kept.collect().await.unwrap_err();
    let cause = error.source().unwrap().to_string();
    assert_eq!(cause, "the body panicked");
    assert_eq!(source.polled.load(Ordering::Relaxed), 2, "it is not asked again");
}

#[tokio::test(start_paused = true)]
async fn answer_is_kept_if_retry_body_must_fail() {
    let sent = AtomicUsize::new(0);
    let service = service_fn(|request: Request<ReplayBody<_>>| {
        sent.fetch_add(1, Ordering::Relaxed);
        async {
            // It reads as far as it can, and responds anyway.
            let _ = request.into_body().collect().await;
            let answer = Response::builder().status(503).body(Empty::<Bytes>::new()).unwrap();
            Ok::<_, Infallible>(answer)
        }
    });
    let body = of_frames([Ok("some"), Err(std::io::Error::other("the file is gone"))]);
    let mut request = Request::put("http://one.example/").body(body).unwrap();
    let slot = ReportSlot::default();
    request.extensions_mut().insert(CallOptions::new().report_to(&slot));
    let response = RetryLayer::http().layer(service).oneshot(request).await.unwrap();
    assert_eq!((response.status().as_u16(), sent.load(Ordering::Relaxed)), (503, 1));
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::BodyNotKept);
}

#[tokio::test]
async fn immediate_retries_yield_to_others() {
    let service = service_fn(|_: Request<ReplayBody<_>>| async {
        let answer = Response::builder().status(503).body(Empty::<Bytes>::new()).unwrap();
        Ok::<_, Infallible>(answer)
    });
    let policy =
        RetryPolicy::http().backoff(Constant::immediate()).max_attempts(10_000).max_elapsed(None).budget(Unlimited);
    let turns = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&turns);
    let other = tokio::spawn(async move {
        loop {
            counted.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    });
    let response = RetryLayer::new(policy).layer(service).oneshot(get()).await.unwrap();
    assert_eq!(response.status(), 503);
    assert!(turns.load(Ordering::Relaxed) > 10, "{turns:?} turns during 10,000 attempts");
    other.abort();
}

/// A call whose service panics in the second attempt stays pending, and does not ask the service for ever.
#[tokio::test(start_paused = true)]
async fn panic_in_a_retry_leaves_the_call_pending() {
    #[derive(Clone, Default)]
    struct PanicsTwice(Arc<AtomicUsize>, Arc<AtomicUsize>);
    impl<B> Service<Request<B>> for PanicsTwice {
        type Response = Response<Empty<Bytes>>;
        type Error = Infallible;
        type Future = std::future::Ready<Result<Self::Response, Infallible>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
            assert!(self.0.fetch_add(1, Ordering::Relaxed) < 100, "the service is asked for ever");
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: Request<B>) -> Self::Future {
            assert!(self.1.fetch_add(1, Ordering::Relaxed) == 0, "on purpose");
            std::future::ready(Ok(Response::builder().status(503).body(Empty::new()).unwrap()))
        }
    }

    let policy = RetryPolicy::http().backoff(Constant::immediate()).seed(1);
    let mut call = task::spawn(RetryLayer::new(policy).layer(PanicsTwice::default()).oneshot(get()));
    catch_unwind(AssertUnwindSafe(|| drop(call.poll()))).unwrap_err();
    assert_pending!(call.poll());
}
