//! A server that follows a script and records what it sees.
//!
//! It panics if it is called without having been readied, and its clones are not ready until readied themselves.

use std::error::Error;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::{BodyExt, Empty, Full};
use reattempt::retry::AttemptNumber;
use reattempt_replay::ReplayBody;
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceExt};

use super::Body;
use super::bodies::AnswerBody;

pub type Answer = Response<AnswerBody>;

/// The request and the response of a mocked service.
pub type Attempt = Request<ReplayBody<Body>>;
pub type Mocked = Response<Empty<Bytes>>;

pub fn mocked(status: u16) -> Mocked {
    Response::builder().status(status).body(Empty::new()).unwrap()
}

/// Returns the client, ready for a request of a test.
pub async fn ready<S>(client: &mut S) -> &mut S
where
    S: Service<Request<Body>, Error: fmt::Debug>,
{
    client.ready().await.unwrap()
}

/// Creates a response with this status and body.
pub fn answer(status: u16, body: &'static str) -> Answer {
    let body = Full::from(body).map_err(|never| match never {}).boxed();
    Response::builder().status(status).body(body).unwrap()
}

/// The server's action on an attempt.
pub enum Act {
    Answer(Answer),
    /// Fails after reading the request's body.
    Fail(io::ErrorKind),
    /// Fails with a given error.
    Error(io::Error),
    /// Never responds.
    Hang,
    /// Acts after a delay.
    Later(Duration, Box<Act>),
}

impl Act {
    pub fn later(self, wait: Duration) -> Self {
        Act::Later(wait, Box::new(self))
    }

    pub fn header(mut self, name: &'static str, value: &'static str) -> Self {
        if let Act::Answer(answer) = &mut self {
            answer.headers_mut().insert(name, value.parse().unwrap());
        }
        self
    }
}

impl From<u16> for Act {
    fn from(status: u16) -> Self {
        Act::Answer(answer(status, ""))
    }
}

impl From<io::ErrorKind> for Act {
    fn from(kind: io::ErrorKind) -> Self {
        Act::Fail(kind)
    }
}

/// The server's own error type, which contains the number of the attempt that it ended.
#[derive(Debug)]
pub struct Broken {
    pub attempt: usize,
    source: BoxError,
}

impl Broken {
    pub fn new(attempt: usize, source: impl Into<BoxError>) -> Self {
        Self { attempt, source: source.into() }
    }
}

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "arrival {} broke", self.attempt)
    }
}

impl Error for Broken {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.source)
    }
}

/// An attempt as the server received it.
#[derive(Debug, Clone)]
pub struct Seen {
    /// The time of its arrival since the server's start.
    pub at: Duration,
    pub head: Parts,
    /// The body, once it was read to its end.
    pub body: Option<Bytes>,
}

impl Seen {
    pub fn number(&self) -> Option<u32> {
        self.head.extensions.get::<AttemptNumber>().map(|number| number.0)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

type Script = Box<dyn Fn(usize, &Parts) -> Act + Send + Sync>;

struct HttpServerState {
    began: Instant,
    script: Script,
    seen: Mutex<Vec<Seen>>,
    cancelled: AtomicUsize,
    unused: AtomicUsize,
}

pub struct Server {
    state: Arc<HttpServerState>,
    ready: bool,
}

impl Server {
    /// Creates a server that follows `script`, which gets the arrival's number, from 1, and its head.
    pub fn by(script: impl Fn(usize, &Parts) -> Act + Send + Sync + 'static) -> Self {
        let state = HttpServerState {
            began: Instant::now(),
            script: Box::new(script),
            seen: Mutex::default(),
            cancelled: AtomicUsize::new(0),
            unused: AtomicUsize::new(0),
        };
        Self { state: Arc::new(state), ready: false }
    }

    /// Creates a server that responds with these statuses in order, and repeats the last.
    pub fn statuses<const N: usize>(statuses: [u16; N]) -> Self {
        Self::by(move |arrival, _| statuses[arrival.min(N) - 1].into())
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.state.seen.lock().unwrap().clone()
    }

    /// Returns the number of attempts.
    pub fn count(&self) -> usize {
        self.state.seen.lock().unwrap().len()
    }

    /// Returns their arrival times, in whole milliseconds from the start.
    pub fn times(&self) -> Vec<u128> {
        self.seen().iter().map(|seen| seen.at.as_millis()).collect()
    }

    /// Returns the number of attempts that were dropped before they ended.
    pub fn cancelled(&self) -> usize {
        self.state.cancelled.load(Ordering::SeqCst)
    }

    /// Returns the number of instances that were readied and then dropped without a call.
    pub fn unused(&self) -> usize {
        self.state.unused.load(Ordering::SeqCst)
    }
}

impl Clone for Server {
    fn clone(&self) -> Self {
        Self { state: Arc::clone(&self.state), ready: false }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.ready {
            self.state.unused.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl<B> Service<Request<ReplayBody<B>>> for Server
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Answer;
    type Error = Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, Broken>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Broken>> {
        self.ready = true;
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<B>>) -> Self::Future {
        assert!(std::mem::take(&mut self.ready), "called without having been readied");
        let state = Arc::clone(&self.state);
        let (head, body) = request.into_parts();
        let mut seen = state.seen.lock().unwrap();
        seen.push(Seen { at: state.began.elapsed(), head: head.clone(), body: None });
        let arrival = seen.len();
        drop(seen);
        Box::pin(async move {
            let mut under_way = UnderWay { state: &state, over: false };
            let act = (state.script)(arrival, &head);
            let result = match body.collect().await {
                Ok(body) => {
                    state.seen.lock().unwrap()[arrival - 1].body = Some(body.to_bytes());
                    perform(act).await.map_err(|error| Broken::new(arrival, error))
                }
                Err(error) => Err(Broken::new(arrival, error)),
            };
            under_way.over = true;
            result
        })
    }
}

async fn perform(mut act: Act) -> Result<Answer, io::Error> {
    loop {
        match act {
            Act::Answer(answer) => return Ok(answer),
            Act::Fail(kind) => return Err(kind.into()),
            Act::Error(error) => return Err(error),
            // If there is a clock, a test that would wait forever fails instead.
            Act::Hang if tokio::runtime::Handle::try_current().is_ok() => {
                tokio::time::sleep(Duration::from_secs(24 * 3600)).await;
                panic!("nobody interrupted it");
            }
            Act::Hang => std::future::pending().await,
            Act::Later(wait, then) => {
                tokio::time::sleep(wait).await;
                act = *then;
            }
        }
    }
}

struct UnderWay<'a> {
    state: &'a HttpServerState,
    over: bool,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        if !self.over {
            self.state.cancelled.fetch_add(1, Ordering::SeqCst);
        }
    }
}
