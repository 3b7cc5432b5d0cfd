//! Tests of attempts that a layer drops while their answers are on their way.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};
use http_body_util::{Full, StreamBody};
use reattempt::guard::handle::UsageExt;
use reattempt::guard::{Bulkhead, GuardLayer};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::linger::{LingerLayer, Lingering};
use reattempt::schedule::Constant;
use reattempt::{CallOptions, RetryLayer, RetryPolicy};
use reattempt_testing::ms;
use tokio::time::{advance, sleep, timeout};
use tokio_test::{assert_ready, task};
use tower::{Layer, Service, ServiceBuilder, ServiceExt};

type Data = Pin<Box<dyn http_body::Body<Data = Bytes, Error = Infallible> + Send>>;

/// A client of a server whose answers take these times, in milliseconds. It counts the answers.
#[derive(Clone)]
struct Client {
    times: &'static [u64],
    body: fn() -> Data,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    sent: AtomicUsize,
    /// Bodies that were dropped after their end.
    read: AtomicUsize,
    /// Attempts and bodies that were dropped before their end.
    dropped: AtomicUsize,
}

impl Client {
    fn new(times: &'static [u64]) -> Self {
        Self { times, body: || Box::pin(Full::from("short")), counts: Arc::default() }
    }

    fn lingering(&self) -> Lingering<Self> {
        LingerLayer::new().layer(self.clone())
    }

    /// Returns the numbers of answers that were read, and of those that were dropped.
    fn ends(&self) -> (usize, usize) {
        (self.counts.read.load(Ordering::SeqCst), self.counts.dropped.load(Ordering::SeqCst))
    }
}

/// An attempt, and then its body, which is counted when it is dropped.
struct Counted {
    counts: Arc<Counts>,
    body: Data,
}

impl Drop for Counted {
    fn drop(&mut self) {
        let count = if self.body.is_end_stream() { &self.counts.read } else { &self.counts.dropped };
        count.fetch_add(1, Ordering::SeqCst);
    }
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.body.as_mut().poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Service<Request<B>> for Client {
    type Response = Response<Counted>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let number = self.counts.sent.fetch_add(1, Ordering::SeqCst);
        let answer = Counted { counts: Arc::clone(&self.counts), body: (self.body)() };
        let time = ms(self.times[number]);
        Box::pin(async move {
            sleep(time).await;
            Ok(Response::new(answer))
        })
    }
}

const HANGS: u64 = 1_000_000;
const ONE: &str = "http://one.example/";

fn get() -> Request<Full<Bytes>> {
    Request::get(ONE).body(Full::default()).unwrap()
}

fn hedges() -> HedgePolicy {
    HedgePolicy::http().max_attempts(2).delay(ms(10))
}

/// Lets tasks run for this many milliseconds.
async fn pass(time: u64) {
    sleep(ms(time)).await;
}

// trap 66
#[tokio::test(start_paused = true)]
async fn loser_is_read_to_its_end() {
    // The first attempt loses, then the hedge.
    for times in [&[40, 10], &[15, 30]] {
        let client = Client::new(times);
        let response = HedgeLayer::new(hedges()).layer(client.lingering()).oneshot(get()).await.unwrap();
        assert_eq!(client.ends(), (0, 0), "nothing is dropped with the call");
        pass(40).await;
        assert_eq!(client.ends(), (1, 0));
        drop(response);
    }
}

/// Without the layer, the loser is dropped with the call.
// trap 66
#[tokio::test(start_paused = true)]
async fn loser_is_dropped_without_the_layer() {
    let client = Client::new(&[40, 10]);
    let _response = HedgeLayer::new(hedges()).layer(client.clone()).oneshot(get()).await.unwrap();
    assert_eq!(client.ends(), (0, 1));
}

// trap 11
#[tokio::test(start_paused = true)]
async fn loser_lingers_for_50_ms_at_most() {
    let client = Client::new(&[HANGS, 10]);
    let _response = HedgeLayer::new(hedges()).layer(client.lingering()).oneshot(get()).await.unwrap();
    pass(49).await;
    assert_eq!(client.ends(), (0, 0));
    pass(2).await;
    assert_eq!(client.ends(), (0, 1));
}

/// A body of 16 KiB is read, and a longer one is dropped at once.
// trap 11
#[tokio::test(start_paused = true)]
async fn loser_with_a_long_body_is_dropped() {
    let bodies: [(fn() -> Data, _); 2] = [
        (|| Box::pin(Full::from(vec![7; 16 * 1024])), (1, 0)),
        (|| Box::pin(Full::from(vec![7; 16 * 1024 + 1])), (0, 1)),
    ];
    for (body, expected) in bodies {
        let client = Client { body, ..Client::new(&[40, 10]) };
        let _response = HedgeLayer::new(hedges()).layer(client.lingering()).oneshot(get()).await.unwrap();
        pass(21).await;
        assert_eq!(client.ends(), expected);
    }
}

// trap 66
#[tokio::test(start_paused = true)]
async fn timed_out_attempt_is_read_to_its_end() {
    let client = Client::new(&[60, 10]);
    let policy = RetryPolicy::http().backoff(Constant::new(ms(10))).attempt_timeout(ms(20));
    let _response = RetryLayer::new(policy).layer(client.lingering()).oneshot(get()).await.unwrap();
    assert_eq!(client.ends(), (0, 0), "the next attempt does not wait for it");
    pass(40).await;
    assert_eq!(client.ends(), (1, 0));
}

// trap 66
#[tokio::test(start_paused = true)]
async fn attempt_at_its_calls_end_lingers() {
    let client = Client::new(&[60]);
    let policy = RetryPolicy::http().attempt_timeout(ms(20)).max_attempts(1);
    RetryLayer::new(policy).layer(client.lingering()).oneshot(get()).await.err().unwrap();
    pass(41).await;
    assert_eq!(client.ends(), (1, 0));
}

// trap 11
#[tokio::test(start_paused = true)]
async fn dropped_call_does_not_linger() {
    let client = Client::new(&[HANGS, HANGS]);
    let call = HedgeLayer::new(hedges()).layer(client.lingering()).oneshot(get());
    assert!(timeout(ms(20), call).await.is_err());
    assert_eq!(client.ends(), (0, 2));
}

/// The loser could read so far that the winner is cut off from the rest of the body.
// BUF-8
#[tokio::test(start_paused = true)]
async fn loser_with_a_streamed_body_is_dropped() {
    let client = Client::new(&[40, 10]);
    let frames = futures_util::stream::iter([Ok::<_, Infallible>(Frame::data(Bytes::from_static(b"part")))]);
    let mut request = Request::put(ONE).body(StreamBody::new(frames)).unwrap();
    request.extensions_mut().insert(CallOptions::new().repeatable(true));
    let _response = HedgeLayer::new(hedges()).layer(client.lingering()).oneshot(request).await.unwrap();
    assert_eq!(client.ends(), (0, 1));
}

// trap 11, G-10
#[tokio::test(start_paused = true)]
async fn place_is_held_while_a_loser_lingers() {
    for (times, lingers) in [(&[40, 10], 20), (&[HANGS, 10], 50)] {
        let client = Client::new(times);
        let bulkhead = Bulkhead::new(2);
        let in_flight = || bulkhead.usage("one.example").in_flight;
        let stack = ServiceBuilder::new()
            .layer(HedgeLayer::new(hedges().boxed_errors()))
            .layer(GuardLayer::http(bulkhead.clone()))
            .service(client.lingering());
        drop(stack.oneshot(get()).await.unwrap());
        pass(lingers - 1).await;
        assert_eq!(in_flight(), 1);
        pass(2).await;
        assert_eq!(in_flight(), 0);
    }
}

// trap 11, G-10
#[tokio::test(start_paused = true)]
async fn place_is_held_after_a_time_limit() {
    for limits_guard in [false, true] {
        let client = Client::new(&[40]);
        let bulkhead = Bulkhead::new(1);
        let (policy, guard) = (RetryPolicy::http().max_attempts(1), GuardLayer::http(bulkhead.clone()));
        let (policy, guard) = match limits_guard {
            false => (policy.attempt_timeout(ms(20)), guard),
            true => (policy.boxed_errors(), guard.attempt_timeout(ms(20))),
        };
        let stack = ServiceBuilder::new().layer(RetryLayer::new(policy)).layer(guard).service(client.lingering());
        stack.oneshot(get()).await.err().unwrap();
        pass(19).await;
        assert_eq!((bulkhead.usage("one.example").in_flight, client.ends()), (1, (0, 0)));
        pass(2).await;
        assert_eq!((bulkhead.usage("one.example").in_flight, client.ends()), (0, (1, 0)));
    }
}

/// A call that ends outside the runtime in which it began drops its loser.
// trap 23
#[test]
fn loser_without_a_runtime_is_dropped() {
    let client = Client::new(&[40, 10]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let mut call = {
        let _entered = runtime.enter();
        task::spawn(HedgeLayer::new(hedges()).layer(client.lingering()).oneshot(get()))
    };
    runtime.block_on(async {
        assert!(call.poll().is_pending());
        advance(ms(11)).await;
        assert!(call.poll().is_pending());
        advance(ms(11)).await;
    });
    let _response = assert_ready!(call.poll());
    assert_eq!(client.ends(), (0, 1));
}

// trap 23
#[test]
fn loser_ends_with_its_runtime() {
    let client = Client::new(&[HANGS, 10]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let response = runtime.block_on(HedgeLayer::new(hedges()).layer(client.lingering()).oneshot(get())).unwrap();
    assert_eq!(client.ends(), (0, 0));
    drop(runtime);
    assert_eq!(client.ends(), (0, 1));
    drop(response);
}

#[tokio::test(start_paused = true)]
async fn clients_of_each_library_can_linger() {
    fn lingers<S: Service<Req>, Req>(_: &S) {}
    type Hyper = hyper_util::client::legacy::Client<hyper_util::client::legacy::connect::HttpConnector, Full<Bytes>>;
    let hyper: Hyper = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new()).build_http();
    lingers::<_, Request<Full<Bytes>>>(&LingerLayer::new().layer(hyper));
    lingers::<_, reqwest::Request>(&LingerLayer::new().layer(reqwest::Client::new()));
    let channel = tonic::transport::Endpoint::from_static("http://one.example").connect_lazy();
    lingers::<_, Request<tonic::body::Body>>(&LingerLayer::new().layer(channel));
}
