//! Tests of attempts that wait for the guard, and then for the inner service.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt::Deadline;
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{self, CircuitBreaker, GuardLayer, Reason, Refused};
use reattempt_testing_layers::calls::{Act, Log, ONE, Server, With, ms};
use reattempt_testing_layers::guard::{Recorder, attempt, refused, timeless};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_test::{assert_pending, assert_ready_err, task};
use tower::{Layer, Service, ServiceExt};

#[tokio::test(start_paused = true)]
async fn queued_call_is_sent_when_it_is_admitted() {
    let server = Server::statuses([200]);
    let (recorder, log) = (Recorder::queueing(), Log::default());
    let layer = GuardLayer::http(recorder.clone()).observe_with(log.clone());
    let client = layer.layer(server.clone());
    let call = tokio::spawn(client.send(attempt(ONE)));
    tokio::time::sleep(ms(5_000)).await;
    assert_eq!(server.count(), 0);
    recorder.release();
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
    assert_eq!(server.times(), [5_000]);
    assert_eq!(recorder.log(), ["waiting", "Served"]);
    assert_eq!(log.lines(), ["one.example: an attempt waits for a guard"]);
}

#[tokio::test(start_paused = true)]
async fn latency_does_not_count_the_wait() {
    let recorder = Recorder::queueing();
    let server = Server::by(|_, _| Act::from(200).later(ms(30)));
    let call = tokio::spawn(GuardLayer::http(recorder.clone()).layer(server).send(attempt(ONE)));
    tokio::time::sleep(ms(500)).await;
    recorder.release();
    call.await.unwrap().unwrap();
    assert_eq!(recorder.latencies(), [ms(30)]);
}

#[tokio::test(start_paused = true)]
async fn waiting_call_reserves_no_readiness() {
    let server = Server::statuses([200]);
    let recorder = Recorder::queueing();
    let client = GuardLayer::http(recorder.clone()).layer(server.clone());
    let call = tokio::spawn(client.send(attempt(ONE)));
    tokio::time::sleep(ms(1)).await;
    assert_eq!(server.unused(), 1, "the readied instance was released");
    recorder.release();
    call.await.unwrap().unwrap();
    assert_eq!(server.unused(), 1, "the one that sends was readied after the wait");
}

#[tokio::test(start_paused = true)]
async fn dropped_waiter_is_unsent() {
    let recorder = Recorder::queueing();
    let server = Server::statuses([200]);
    let client = GuardLayer::http(recorder.clone()).layer(server.clone());
    let call = tokio::time::timeout(ms(100), client.send(attempt(ONE))).await;
    assert!(call.is_err());
    assert_eq!(recorder.log(), ["waiting", "unsent"]);
    assert_eq!(server.count(), 0);
}

// G-26
#[tokio::test(start_paused = true)]
async fn queued_call_meets_a_breaker_opened_since() {
    let (breaker, queue) = (timeless().consecutive_failures(5), Recorder::queueing());
    let server = Server::statuses([200]);
    let client = GuardLayer::http((breaker.clone(), queue.clone())).layer(server.clone());
    let call = tokio::spawn(client.send(attempt(ONE)));
    tokio::time::sleep(ms(100)).await;
    breaker.isolate("one.example").unwrap();
    queue.release();
    let error = call.await.unwrap().unwrap_err();
    assert_eq!(error.downcast_ref::<Refused>().unwrap().reason(), Reason::Isolated);
    assert_eq!((server.count(), queue.log().join(" ")), (0, "waiting unsent".into()));
}

#[tokio::test(start_paused = true)]
async fn deadline_ends_a_wait_without_an_end() {
    for until in [None, Some(guard::handle::now()), Some(guard::handle::now() + ms(60_000))] {
        let recorder = Recorder::queueing();
        if let Some(until) = until {
            recorder.until(until);
        }
        let client = GuardLayer::http(recorder.clone()).layer(Server::statuses([200]));
        let began = Instant::now();
        let request = attempt(ONE).with(Deadline::after(ms(300)));
        let error = client.send(request).await.unwrap_err();
        assert!(error.is::<reattempt::TimedOut>(), "{error}");
        assert_eq!(error.to_string(), "the deadline passed after 300ms");
        assert_eq!(began.elapsed(), ms(300));
        assert_eq!(recorder.log(), ["waiting", "unsent"]);
    }
}

/// The timer counts in milliseconds, so the turn at 100 ms comes with the deadline of 100.5 ms.
#[tokio::test(start_paused = true)]
async fn call_that_waited_is_not_sent_too_late() {
    let recorder = Recorder::queueing();
    let breaker = CircuitBreaker::rate();
    let server = Server::statuses([200]);
    let client = GuardLayer::http((recorder.clone(), breaker.clone())).layer(server.clone());
    let deadline = Deadline::after(Duration::from_micros(100_500));
    let call = client.send(attempt(ONE).with(deadline));
    let mut call = task::spawn(call);
    assert_pending!(call.poll());
    recorder.release();
    tokio::time::advance(ms(101)).await;
    let error = assert_ready_err!(call.poll());
    assert_eq!(error.to_string(), "the deadline passed after 101ms");
    assert_eq!((server.count(), breaker.counts("one.example").requests), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn guard_refuses_at_the_end_of_a_wait() {
    let recorder = Recorder::queueing();
    recorder.until(guard::handle::now() + ms(200));
    let log = Log::default();
    let layer = GuardLayer::http(recorder.clone()).observe_with(log.clone());
    let call = tokio::spawn(layer.layer(Server::statuses([200])).send(attempt(ONE)));
    tokio::time::sleep(ms(100)).await;
    recorder.refuse(refused());
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is::<Refused>());
    // The guard took its ticket back when it refused.
    assert_eq!(recorder.log(), ["waiting"]);
    assert_eq!(log.lines()[1], "one.example: not sent: the guard is full");
}

/// A service that is ready while its semaphore has a permit.
#[derive(Clone)]
struct Slow {
    places: Arc<Semaphore>,
    sent: Arc<AtomicBool>,
}

impl Service<Request<Empty<bytes::Bytes>>> for Slow {
    type Response = Response<Empty<bytes::Bytes>>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        let mut acquire = Box::pin(Arc::clone(&self.places).acquire_owned());
        if acquire.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let (places, waker) = (Arc::clone(&self.places), cx.waker().clone());
        tokio::spawn(async move {
            drop(places.acquire().await);
            waker.wake();
        });
        Poll::Pending
    }

    fn call(&mut self, _: Request<Empty<bytes::Bytes>>) -> Self::Future {
        self.sent.store(true, Ordering::SeqCst);
        std::future::ready(Ok(Response::new(Empty::new())))
    }
}

// G-26
#[tokio::test(start_paused = true)]
async fn guards_decide_again_after_slow_ready() {
    let slow = Slow { places: Arc::new(Semaphore::new(1)), sent: Arc::default() };
    let queue = Recorder::queueing();
    let mut client = GuardLayer::http(queue.clone()).layer(slow.clone());
    let request = Request::get(ONE).body(Empty::new()).unwrap();
    let call = tokio::spawn(client.ready().await.unwrap().call(request));
    let taken = slow.places.acquire().await.unwrap();
    queue.release();
    tokio::time::sleep(ms(100)).await;
    queue.refuse(refused());
    drop(taken);
    let error = call.await.unwrap().unwrap_err();
    assert!(error.is::<Refused>());
    assert_eq!(queue.log(), ["waiting", "renewed"]);
    assert!(!slow.sent.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn deadline_ends_a_wait_for_readiness() {
    let slow = Slow { places: Arc::new(Semaphore::new(1)), sent: Arc::default() };
    let queue = Recorder::queueing();
    let mut client = GuardLayer::http(queue.clone()).layer(slow.clone());
    let request = Request::get(ONE).body(Empty::new()).unwrap();
    let request = request.with(Deadline::after(ms(300)));
    let call = client.ready().await.unwrap().call(request);
    let _taken = slow.places.acquire().await.unwrap();
    let began = Instant::now();
    queue.release();
    let ended = tokio::time::timeout(ms(1000), call).await;
    let error = ended.expect("an end at the deadline").unwrap_err();
    assert!(error.is::<reattempt::TimedOut>(), "{error}");
    assert_eq!(error.to_string(), "the deadline passed after 300ms");
    assert_eq!(began.elapsed(), ms(300));
    assert_eq!(queue.log(), ["waiting", "unsent"]);
    assert!(!slow.sent.load(Ordering::SeqCst));
}

fn always_ready() -> impl Service<Request<Empty<Bytes>>, Response = Response<Empty<Bytes>>, Error = Infallible> + Clone
{
    tower::service_fn(async |_| Ok(Response::new(Empty::new())))
}

// trap 23
#[test]
fn without_a_runtime_no_call_waits() {
    let recorder = Recorder::queueing();
    let mut client = GuardLayer::http(recorder.clone()).layer(always_ready());
    let mut call = Box::pin(client.call(Request::get(ONE).body(Empty::new()).unwrap()));
    let mut cx = Context::from_waker(Waker::noop());
    let Poll::Ready(Err(error)) = call.as_mut().poll(&mut cx) else { panic!("it waits") };
    assert!(error.is::<Refused>());
    assert_eq!(recorder.log(), ["waiting", "unsent", "impatient"]);
}

/// A call that was created inside a runtime, and waits outside it, is refused.
// trap 23
#[test]
fn call_that_leaves_its_runtime_is_refused() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut cx = Context::from_waker(Waker::noop());
    for polled_inside in [false, true] {
        let recorder = Recorder::queueing();
        let mut client = GuardLayer::http(recorder.clone()).layer(always_ready());
        let entered = runtime.enter();
        let mut limited = Request::get(ONE).body(Empty::new()).unwrap();
        limited.extensions_mut().insert(Deadline::after(ms(60_000)));
        let mut call = Box::pin(client.call(limited));
        if polled_inside {
            assert!(call.as_mut().poll(&mut cx).is_pending());
        }
        drop(entered);
        match call.as_mut().poll(&mut cx) {
            Poll::Pending => assert!(polled_inside, "it has a timer"),
            Poll::Ready(ended) => assert!(ended.unwrap_err().is::<Refused>()),
        }
        drop(call);
        assert_eq!(recorder.log(), ["waiting", "unsent"]);
    }
}
