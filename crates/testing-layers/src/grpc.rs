//! A scripted in-memory server, whose bodies arrive when the script decides.

use std::collections::VecDeque;
use std::error::Error;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use reattempt::RetryPolicy;
use reattempt::grpc::Grpc;
use reattempt::grpc::GrpcBody;
use reattempt_core::{Budget, Evidence, Failure, Permit, ServerHint};
use reattempt_grpc::{Code, RetryThrottle, RetryThrottling};
use reattempt_schedule_fixed::Constant;
use tokio::time::{Instant, sleep};
use tonic::body::Body;
use tower::{BoxError, Service};

pub use reattempt_testing::ms;

pub type ScriptedBody = StreamBody<StepFrames>;
pub type Answer = Response<ScriptedBody>;
pub type Reply = Response<GrpcBody<ScriptedBody>>;

/// The frames of a body.
pub struct StepFrames(Pin<Box<dyn Stream<Item = Result<Frame<Bytes>, BoxError>> + Send>>);

impl fmt::Debug for StepFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StepFrames")
    }
}

impl Stream for StepFrames {
    type Item = Result<Frame<Bytes>, BoxError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

/// The next step of a body.
pub enum Step {
    Data(&'static str),
    Trailers(HeaderMap),
    Wait(u64),
    Fail(BoxError),
    /// Neither more data nor an end ever arrives.
    Hang,
}

pub fn body(steps: impl IntoIterator<Item = Step>) -> ScriptedBody {
    let steps: VecDeque<Step> = steps.into_iter().collect();
    let frames = stream::unfold(steps, |mut steps| async move {
        loop {
            let frame = match steps.pop_front()? {
                Step::Data(data) => Ok(Frame::data(Bytes::from_static(data.as_bytes()))),
                Step::Trailers(trailers) => Ok(Frame::trailers(trailers)),
                Step::Fail(error) => Err(error),
                Step::Hang => std::future::pending().await,
                Step::Wait(milliseconds) => {
                    sleep(ms(milliseconds)).await;
                    continue;
                }
            };
            return Some((frame, steps));
        }
    });
    StreamBody::new(StepFrames(Box::pin(frames)))
}

/// Returns headers that are not the end, followed by these frames.
pub fn streaming(steps: impl IntoIterator<Item = Step>) -> Answer {
    Response::builder().header("content-type", "application/grpc").body(body(steps)).unwrap()
}

/// Returns a response with one message and this status in its trailers.
pub fn ends_with(code: Code) -> Answer {
    streaming([Step::Data("message"), Step::Trailers(status(code))])
}

/// Returns a response that ends with its head.
pub fn trailers_only(code: Code) -> Answer {
    let mut answer = Response::new(body([]));
    *answer.headers_mut() = status(code);
    answer
}

/// Returns a status, as headers or trailers.
pub fn status(code: Code) -> HeaderMap {
    field("grpc-status", &code.number().to_string())
}

pub fn field(name: &'static str, value: &str) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())])
}

pub fn with(mut answer: Answer, name: &'static str, value: &str) -> Answer {
    answer.headers_mut().append(name, value.parse().unwrap());
    answer
}

/// The error of a client whose connection is lost.
#[derive(Debug)]
pub struct Lost(pub BoxError);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("lost")
    }
}

impl Error for Lost {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

pub fn lost(error: impl Into<BoxError>) -> Lost {
    Lost(error.into())
}

/// Computes how long an attempt takes and how it ends, from its number, starting at 1.
type Script = dyn Fn(usize) -> (u64, Result<Answer, Lost>) + Send + Sync;

#[derive(Clone)]
pub struct GrpcServer(Arc<GrpcServerState>);

struct GrpcServerState {
    began: Instant,
    script: Box<Script>,
    seen: Mutex<Vec<(Duration, HeaderMap)>>,
}

impl GrpcServer {
    /// Creates a server with this script.
    pub fn by(script: impl Fn(usize) -> (u64, Result<Answer, Lost>) + Send + Sync + 'static) -> Self {
        let (began, script, seen) = (Instant::now(), Box::new(script), Mutex::default());
        Self(Arc::new(GrpcServerState { began, script, seen }))
    }

    /// Creates a server that responds at once.
    pub fn at_once(script: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        Self::by(move |number| (0, Ok(script(number))))
    }

    /// Creates a server that responds after this many milliseconds.
    pub fn after(script: impl Fn(usize) -> (u64, Answer) + Send + Sync + 'static) -> Self {
        Self::by(move |number| {
            let (wait, answer) = script(number);
            (wait, Ok(answer))
        })
    }

    /// Creates a server that responds with these heads in order, and repeats the last.
    pub fn heads(answers: impl IntoIterator<Item = Answer>) -> Self {
        let heads = answers.into_iter().map(|answer| answer.into_parts().0);
        let heads: Vec<_> = heads.collect();
        Self::at_once(move |number| {
            let head = heads.get(number - 1).or(heads.last()).unwrap();
            Response::from_parts(head.clone(), body([]))
        })
    }

    pub fn count(&self) -> usize {
        self.0.seen.lock().unwrap().len()
    }

    /// Returns the time of each attempt, in milliseconds.
    pub fn times(&self) -> Vec<u128> {
        self.0.seen.lock().unwrap().iter().map(|(at, _)| at.as_millis()).collect()
    }

    /// Returns this field of each attempt.
    pub fn fields(&self, name: &str) -> Vec<Option<String>> {
        let seen = self.0.seen.lock().unwrap();
        let read = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        seen.iter().map(|(_, headers)| headers.get(name).map(read)).collect()
    }
}

impl Service<Request<Body>> for GrpcServer {
    type Response = Answer;
    type Error = Lost;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Lost>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Lost>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let mut seen = self.0.seen.lock().unwrap();
        seen.push((self.0.began.elapsed(), request.headers().clone()));
        let (wait, outcome) = (self.0.script)(seen.len());
        Box::pin(async move {
            if wait > 0 {
                sleep(ms(wait)).await;
            }
            outcome
        })
    }
}

pub fn call() -> Request<Body> {
    Request::post("http://one.example/service/method").body(Body::empty()).unwrap()
}

pub fn call_with<T: Clone + Send + Sync + 'static>(value: T) -> Request<Body> {
    let mut call = call();
    call.extensions_mut().insert(value);
    call
}

/// Returns a call whose own client has set a timeout, as tonic does.
pub fn call_within(timeout: &str) -> Request<Body> {
    let mut call = call();
    call.headers_mut().insert("grpc-timeout", timeout.parse().unwrap());
    call
}

/// Returns a policy for calls that may be repeated, with a delay of exactly this much.
pub fn policy(delay: u64) -> RetryPolicy<Grpc, Constant> {
    unmarked(delay).repeatable(true)
}

/// Returns the defaults, with a delay of exactly this much.
pub fn unmarked(delay: u64) -> RetryPolicy<Grpc, Constant> {
    RetryPolicy::grpc().backoff(match delay {
        0 => Constant::immediate(),
        delay => Constant::new(ms(delay)),
    })
}

/// Returns the status that the caller of a generated client sees, and what it has read of the response.
pub async fn read<B>(reply: Response<B>) -> (Option<Code>, String)
where
    B: http_body::Body<Data = Bytes>,
{
    let code = |headers: &HeaderMap| headers.get("grpc-status").map(|value| Code::from_bytes(value.as_bytes()));
    let head = code(reply.headers());
    let (mut text, mut trailers) = (String::new(), None);
    let mut body = Box::pin(reply.into_body());
    // If a response never ends, the test must fail and not hang.
    while let Some(frame) =
        tokio::time::timeout(Duration::from_secs(3600), body.frame()).await.expect("the answer ends")
    {
        let Ok(frame) = frame else { break };
        match frame.into_data() {
            Ok(data) => text.push_str(std::str::from_utf8(&data).unwrap()),
            Err(frame) => trailers = code(frame.trailers_ref().unwrap()),
        }
    }
    (head.or(trailers), text)
}

/// Returns a throttle of ten tokens, one of which is gone. So credits are visible, but nothing is throttled yet.
pub fn throttle() -> RetryThrottle {
    let throttle = RetryThrottle::new(Some(RetryThrottling::new(10.0, 0.1)));
    throttle.failed();
    throttle
}

/// Returns the balance above the initial nine tokens, in thousandths.
pub fn change(throttle: &RetryThrottle) -> i64 {
    i64::from(throttle.tokens_thousandths().unwrap()) - 9000
}

/// A budget that records its events.
#[derive(Debug, Clone, Default)]
pub struct Diary(Arc<Mutex<Vec<String>>>);

impl Diary {
    fn note(&self, line: String) {
        self.0.lock().unwrap().push(line);
    }

    pub fn lines(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl Budget for Diary {
    fn acquire(&self, destination: &str, _: &Failure, _: Duration) -> Option<Permit> {
        self.note(format!("acquire {destination}"));
        Some(Permit::free())
    }

    fn on_success(&self, destination: &str, retries: u32) {
        self.note(format!("succeeded {destination} {retries}"));
    }

    fn on_permanent_failure(&self, destination: &str, hint: ServerHint, retries: u32) {
        self.note(format!("failed for good {destination} {hint:?} {retries}"));
    }

    fn on_failure(&self, destination: &str, failure: &Evidence, _: Duration) {
        self.note(format!("failed {destination} {failure}"));
    }
}
