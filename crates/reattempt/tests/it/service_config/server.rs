//! A gRPC service that follows a script, under a paused clock.

use std::collections::HashMap;
use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::StreamBody;
use reattempt_grpc::Code;
use tokio::time::Instant;
use tonic::body::Body;
use tower::{BoxError, Service};

use super::PATH;

pub(super) type Frames = futures_util::stream::Iter<std::vec::IntoIter<Result<Frame<Bytes>, BoxError>>>;
pub(super) type Answer = Response<StreamBody<Frames>>;

/// The outcome of an attempt.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Step {
    /// One block of headers with this status, and with pushback if it is set.
    Only(Code, Option<&'static str>),
    /// Headers, and trailers with this status.
    Answer(Code),
    /// The connection fails.
    NoConnection,
    /// The connection is lost.
    Lost,
    /// There is never a response.
    Hang,
}

pub(super) const OK: Step = Step::Answer(Code::Ok);
pub(super) const UNAVAILABLE: Step = Step::Only(Code::Unavailable, None);
pub(super) const ABORTED: Step = Step::Only(Code::Aborted, None);

/// A server that plays each path's steps in order, and repeats the last.
#[derive(Clone)]
pub(super) struct Server(Arc<State>);

pub(super) struct State {
    pub(super) began: Instant,
    pub(super) scripts: HashMap<&'static str, Vec<Step>>,
    pub(super) seen: Mutex<Vec<Seen>>,
}

pub(super) struct Seen {
    pub(super) at: Duration,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
}

impl Server {
    pub(super) fn new(scripts: impl IntoIterator<Item = (&'static str, Vec<Step>)>) -> Self {
        let scripts = scripts.into_iter().collect();
        Self(Arc::new(State { began: Instant::now(), scripts, seen: Mutex::default() }))
    }

    /// Creates a server with one script for the method that [`call`] calls.
    pub(super) fn of(script: impl IntoIterator<Item = Step>) -> Self {
        Self::new([(PATH, script.into_iter().collect())])
    }

    pub(super) fn count(&self) -> usize {
        self.0.seen.lock().unwrap().len()
    }

    /// Returns the time of each attempt, in milliseconds.
    pub(super) fn times(&self) -> Vec<u128> {
        self.0.seen.lock().unwrap().iter().map(|seen| seen.at.as_millis()).collect()
    }

    pub(super) fn fields(&self, name: &str) -> Vec<Option<String>> {
        let seen = self.0.seen.lock().unwrap();
        let text = |value: &http::HeaderValue| value.to_str().unwrap().to_owned();
        seen.iter().map(|seen| seen.headers.get(name).map(text)).collect()
    }
}

impl Service<Request<Body>> for Server {
    type Response = Answer;
    type Error = std::io::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Answer, std::io::Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), std::io::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let path = request.uri().path().to_owned();
        let mut seen = self.0.seen.lock().unwrap();
        let before = seen.iter().filter(|seen| seen.path == path).count();
        let script = &self.0.scripts[&*path];
        let step = *script.get(before).or(script.last()).unwrap();
        let headers = request.headers().clone();
        seen.push(Seen { at: self.0.began.elapsed(), path, headers });
        drop(seen);
        Box::pin(async move {
            match step {
                Step::Only(code, pushback) => {
                    let mut answer = answer(vec![]);
                    answer.headers_mut().insert("grpc-status", code.number().into());
                    if let Some(pushback) = pushback {
                        let pushback = pushback.parse().unwrap();
                        answer.headers_mut().insert("grpc-retry-pushback-ms", pushback);
                    }
                    Ok(answer)
                }
                Step::Answer(code) => {
                    let status = ("grpc-status".parse().unwrap(), code.number().into());
                    let trailers = HeaderMap::from_iter([status]);
                    Ok(answer(vec![Ok(Frame::trailers(trailers))]))
                }
                Step::NoConnection => Err(std::io::ErrorKind::ConnectionRefused.into()),
                Step::Lost => Err(std::io::ErrorKind::ConnectionReset.into()),
                Step::Hang => pending().await,
            }
        })
    }
}

pub(super) fn answer(frames: Vec<Result<Frame<Bytes>, BoxError>>) -> Answer {
    Response::new(StreamBody::new(futures_util::stream::iter(frames)))
}

pub(super) fn pushed_back(milliseconds: &'static str) -> Step {
    Step::Only(Code::Unavailable, Some(milliseconds))
}
