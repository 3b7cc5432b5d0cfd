//! Tests of the kept part of a request while its call may still be sent again (§3, §4): its charge, its limits, its
//! release.

use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt};
use http::Request;
use http_body_util::BodyExt;
use reattempt::grpc::Grpc;
use reattempt::grpc::service_config::ServiceConfigLayer;
use reattempt::{Report, RetryLayer, RetryPolicy};
use reattempt_core::StopReason;
use reattempt_grpc::{Code, ServiceConfig};
use reattempt_replay::{ReplayLimits, ReplayMemory};
use reattempt_schedule_fixed::Constant;
use tokio::sync::{mpsc, oneshot};
use tokio::time::advance;
use tokio_test::task;
use tonic::body::Body;
use tower::{Layer, Service};

use crate::calls::support::fed;
use crate::grpc::support::{Answer, Lost, Reply, Step, call_within, ms, policy, streaming, trailers_only};

/// An attempt that has arrived: its upload, and the channel for the response.
struct Arrived {
    upload: Body,
    answer: oneshot::Sender<Answer>,
}

impl Arrived {
    /// Returns the number of upload bytes that have arrived, and whether the upload has ended.
    fn read(&mut self) -> (usize, bool) {
        let mut bytes = 0;
        loop {
            match task::spawn(self.upload.frame()).poll() {
                Poll::Pending => return (bytes, false),
                Poll::Ready(None) => return (bytes, true),
                Poll::Ready(Some(frame)) => bytes += frame.unwrap().into_data().unwrap().len(),
            }
        }
    }
}

/// A server that passes each attempt to the test.
#[derive(Clone)]
struct Handing(mpsc::UnboundedSender<Arrived>);

impl Service<Request<Body>> for Handing {
    type Response = Answer;
    type Error = Lost;
    type Future = BoxFuture<'static, Result<Answer, Lost>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (answer, answered) = oneshot::channel();
        let upload = request.into_body();
        assert!(self.0.send(Arrived { upload, answer }).is_ok(), "the test is over");
        async { Ok(answered.await.unwrap()) }.boxed()
    }
}

/// A call in flight, with everything that a test controls.
struct Scene {
    call: task::Spawn<BoxFuture<'static, Result<Reply, Lost>>>,
    speak: mpsc::UnboundedSender<Bytes>,
    arrivals: mpsc::UnboundedReceiver<Arrived>,
}

impl Scene {
    /// Creates a call through the client that `wrap` creates from the server.
    fn of<S>(wrap: impl FnOnce(Handing) -> S) -> Self
    where
        S: Service<Request<Body>, Response = Reply, Error = Lost>,
        S::Future: Send + 'static,
    {
        let (arrive, arrivals) = mpsc::unbounded_channel();
        let (speak, messages) = fed();
        let mut request = call_within("60S");
        *request.body_mut() = Body::new(messages);
        let call = task::spawn(wrap(Handing(arrive)).call(request).boxed());
        let mut scene = Self { call, speak, arrivals };
        assert!(scene.goes_on());
        scene
    }

    /// Creates a call under this policy, and what its layer keeps.
    fn new(policy: RetryPolicy<Grpc, Constant>, limits: ReplayLimits) -> (Self, ReplayMemory) {
        let memory = ReplayMemory::new(1 << 20);
        let policy = policy.protocol(|grpc| grpc.replay(limits.memory(memory.clone())));
        (Self::of(|server| RetryLayer::new(policy).layer(server)), memory)
    }

    /// Polls the call, which must not be over.
    fn goes_on(&mut self) -> bool {
        self.call.poll().is_pending()
    }

    /// Polls the call, which must be over. Returns the status in the response head, and why it ended.
    fn ended(&mut self) -> (Option<Code>, Option<StopReason>) {
        let Poll::Ready(Ok(reply)) = self.call.poll() else { panic!("it goes on, or has failed") };
        let status = reply.headers().get("grpc-status");
        let report = reply.extensions().get::<Report>();
        (status.map(|code| Code::from_bytes(code.as_bytes())), report.map(Report::stop_reason))
    }

    fn say(&self, length: usize) {
        self.speak.send(vec![7; length].into()).unwrap();
    }

    fn arrived(&mut self) -> Arrived {
        self.arrivals.try_recv().unwrap()
    }
}

/// Refuses the attempt in a way that allows a retry.
fn refuse(attempt: Arrived) -> Body {
    answer(attempt, trailers_only(Code::Unavailable))
}

fn answer(attempt: Arrived, with: Answer) -> Body {
    assert!(attempt.answer.send(with).is_ok(), "the attempt was dropped");
    attempt.upload
}

fn limits(per_call: usize) -> ReplayLimits {
    ReplayLimits::default().per_call(per_call)
}

/// Only more than the limit is too much, and a message counts as it is sent, with its prefix.
// BUF-3, BUF-4
#[tokio::test(start_paused = true)]
async fn frames_count_with_prefix_up_to_limit() {
    for (message, retried) in [(995, true), (996, false)] {
        let (mut scene, _) = Scene::new(policy(0), limits(1000));
        let mut first = scene.arrived();
        scene.say(5 + message);
        assert_eq!(first.read(), (5 + message, false));
        refuse(first);
        assert_eq!((scene.goes_on(), scene.arrivals.len()), (retried, usize::from(retried)));
    }
}

// BUF-5
#[tokio::test(start_paused = true)]
async fn buffer_is_256_kib_by_default() {
    const PART: usize = 64 * 1024;
    for (last, retried) in [(PART, true), (PART + 1, false)] {
        let mut scene = Scene::of(|server| RetryLayer::new(policy(0)).layer(server));
        let mut first = scene.arrived();
        for length in [PART, PART, PART, last] {
            scene.say(length);
        }
        assert_eq!(first.read(), (3 * PART + last, false));
        refuse(first);
        assert_eq!((scene.goes_on(), scene.arrivals.len()), (retried, usize::from(retried)));
    }
}

/// The limits are set by the client, on its policy; a config's limits are ignored.
// BUF-1
#[tokio::test(start_paused = true)]
async fn buffer_limits_are_never_the_configs() {
    let text = r#"{"methodConfig": [{"name": [{}],
        "retryPolicy": {
            "maxAttempts": 2, "initialBackoff": "0.000000001s", "maxBackoff": "0.000000001s",
            "backoffMultiplier": 1, "retryableStatusCodes": [14], "perRpcBufferLimit": 1
        },
        "perRpcBufferLimit": 1}], "perRpcBufferLimit": 1, "retryBufferSize": "1"}"#;
    for (kept, retried) in [(100, true), (99, false)] {
        let layer = ServiceConfigLayer::new(ServiceConfig::parse(text).unwrap())
            .retries(|policy| policy.protocol(|grpc| grpc.replay(limits(kept))));
        let mut scene = Scene::of(|server| layer.layer(server));
        let mut first = scene.arrived();
        scene.say(100);
        assert_eq!(first.read(), (100, false));
        refuse(first);
        assert_eq!(scene.goes_on(), retried, "{kept}");
        if retried {
            advance(ms(1)).await;
            assert!(scene.goes_on());
            assert_eq!(scene.arrived().read(), (100, false));
        }
    }
}

/// Bytes beyond the limit are sent after the replayed ones, on the current attempt.
// COM-2, BUF-6
#[tokio::test(start_paused = true)]
async fn unfitting_frame_waits_and_ends_keeping() {
    let (mut scene, memory) = Scene::new(policy(0), limits(100));
    let mut first = scene.arrived();
    scene.say(40);
    assert_eq!(first.read(), (40, false));
    refuse(first);
    assert!(scene.goes_on());
    scene.say(50);
    scene.say(70);
    let mut second = scene.arrived();
    let mut lengths = Vec::new();
    for _ in 0..3 {
        let frame = second.upload.frame().await.unwrap().unwrap();
        lengths.push((frame.into_data().unwrap().len(), memory.used()));
    }
    assert_eq!(lengths, [(40, 40), (50, 90), (70, 0)], "in order, and nothing is kept of the last");
    scene.say(1000);
    assert_eq!(second.read(), (1000, false), "and it is still sent to its end");
    refuse(second);
    assert_eq!(scene.ended(), (Some(Code::Unavailable), Some(StopReason::BodyNotKept)));
    assert_eq!(scene.arrivals.len(), 0);
}

/// During a wait nothing is read from the request, so nothing can overflow. Data that the caller has ready by then
/// overflows on the next attempt. That attempt is still made, and is the last.
// BUF-7, BUF-12
#[tokio::test(start_paused = true)]
async fn nothing_is_read_in_a_wait() {
    let (mut scene, memory) = Scene::new(policy(50), limits(100));
    let mut first = scene.arrived();
    scene.say(40);
    assert_eq!(first.read(), (40, false));
    refuse(first);
    assert!(scene.goes_on());
    for _ in 0..10 {
        scene.say(100);
    }
    assert!(scene.goes_on());
    assert_eq!(memory.used(), 40);
    advance(ms(50)).await;
    assert!(scene.goes_on());
    let mut second = scene.arrived();
    assert_eq!(second.read(), (1040, false));
    refuse(second);
    assert_eq!(scene.ended(), (Some(Code::Unavailable), Some(StopReason::BodyNotKept)));
    assert_eq!(scene.arrivals.len(), 0);
}

/// Once a response has come, the kept bytes are released: at once what the attempt has sent, and the rest as it is
/// replayed.
// COM-6, BUF-9
#[tokio::test(start_paused = true)]
async fn commit_gives_buffer_back() {
    for replayed_before in [true, false] {
        let (mut scene, memory) = Scene::new(policy(0), limits(10_000));
        let mut first = scene.arrived();
        scene.say(1000);
        assert_eq!(first.read(), (1000, false));
        let _upload = refuse(first);
        assert!(scene.goes_on());
        let mut second = scene.arrived();
        if replayed_before {
            assert_eq!(second.read(), (1000, false));
        }
        assert_eq!(memory.used(), 1000);
        let upload = answer(second, streaming([Step::Hang]));
        let Poll::Ready(Ok(_reply)) = scene.call.poll() else { panic!("the answer is there") };
        assert_eq!(memory.used(), if replayed_before { 0 } else { 1000 });
        let mut second = Arrived { upload, answer: oneshot::channel().0 };
        scene.say(5000);
        assert_eq!(second.read(), (if replayed_before { 5000 } else { 6000 }, false));
        assert_eq!(memory.used(), 0);
    }
}

/// A decision not to retry, the deadline and a dropped call all release the buffer.
// COM-4, BUF-9
#[tokio::test(start_paused = true)]
async fn every_end_of_call_gives_buffer_back() {
    for end in ["decision", "deadline", "cancel"] {
        let (mut scene, memory) = Scene::new(policy(0), limits(10_000));
        let mut attempt = scene.arrived();
        scene.say(1000);
        assert_eq!(attempt.read(), (1000, false));
        assert_eq!(memory.used(), 1000, "{end}");
        // The sender of the attempt may hold its body for a while.
        let _upload = match end {
            "decision" => {
                let upload = answer(attempt, trailers_only(Code::NotFound));
                assert_eq!(scene.ended().0, Some(Code::NotFound));
                upload
            }
            "deadline" => {
                advance(ms(60_000)).await;
                assert_eq!(scene.ended().0, Some(Code::DeadlineExceeded));
                attempt.upload
            }
            _ => {
                drop(scene);
                attempt.upload
            }
        };
        assert_eq!(memory.used(), 0, "{end}");
    }
}

/// The last attempt keeps nothing, unless it could still be replaced.
// COM-5
#[tokio::test(start_paused = true)]
async fn last_attempt_keeps_nothing() {
    for (replaced, kept) in [(false, 0), (true, 1000)] {
        let policy = policy(0).max_attempts(2).protocol(|grpc| grpc.transparent_retries(replaced));
        let (mut scene, memory) = Scene::new(policy, limits(10_000));
        let mut first = scene.arrived();
        scene.say(1000);
        assert_eq!(first.read(), (1000, false));
        refuse(first);
        assert!(scene.goes_on());
        let mut second = scene.arrived();
        assert_eq!(second.read(), (1000, false));
        assert_eq!(memory.used(), kept);
    }
}

/// All calls of a layer share one limit. A call without room is sent but not retried.
// BUF-2, BUF-5
#[tokio::test(start_paused = true)]
async fn call_past_bound_is_sent_unkept() {
    let bound = ReplayLimits::default().memory(ReplayMemory::new(200));
    let layer = RetryLayer::new(policy(0).protocol(|grpc| grpc.replay(bound)));
    let [mut first, mut second] = std::array::from_fn(|_| Scene::of(|server| layer.clone().layer(server)));
    let [mut kept, mut passed] = [&mut first, &mut second].map(|scene| {
        scene.say(60);
        scene.arrived()
    });
    assert_eq!((kept.read(), passed.read()), ((60, false), (60, false)));
    refuse(passed);
    assert_eq!(second.ended(), (Some(Code::Unavailable), Some(StopReason::BodyNotKept)));
    refuse(kept);
    assert!(first.goes_on());
    assert_eq!(first.arrived().read(), (60, false));
}
