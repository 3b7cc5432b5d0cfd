//! Bodies that follow a script, and the client that all tests share.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use reattempt::schedule::Constant;
use reattempt::{Http, RetryLayer, RetryPolicy};
use reattempt_control::RetryBudget;
use tokio::time::{Sleep, sleep};
use tower::Service;

pub(crate) type Full = http_body_util::Full<Bytes>;

/// A step of a body.
#[derive(Debug, Clone)]
pub(crate) enum Step {
    Data(Bytes),
    Trailers(HeaderMap),
    Break,
    Wait(Duration),
    Never,
}

pub(crate) fn data(text: &'static str) -> Step {
    Step::Data(Bytes::from_static(text.as_bytes()))
}

/// A body that follows a script. Unless it has a length, that is unknown.
pub(crate) struct Scripted {
    steps: VecDeque<Step>,
    length: Option<u64>,
    sleep: Option<Pin<Box<Sleep>>>,
}

pub(crate) fn body(length: Option<u64>, steps: impl IntoIterator<Item = Step>) -> Scripted {
    Scripted { steps: steps.into_iter().collect(), length, sleep: None }
}

impl Body for Scripted {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        if let Some(sleep) = &mut self.sleep {
            std::task::ready!(sleep.as_mut().poll(cx));
            self.sleep = None;
        }
        match self.steps.pop_front() {
            None => Poll::Ready(None),
            Some(Step::Data(data)) => {
                self.length = self.length.map(|length| length.saturating_sub(data.len() as u64));
                Poll::Ready(Some(Ok(Frame::data(data))))
            }
            Some(Step::Trailers(trailers)) => Poll::Ready(Some(Ok(Frame::trailers(trailers)))),
            Some(Step::Break) => Poll::Ready(Some(Err(io::ErrorKind::ConnectionReset.into()))),
            Some(Step::Wait(time)) => {
                self.sleep = Some(Box::pin(sleep(time)));
                self.poll_frame(cx)
            }
            Some(Step::Never) => {
                self.steps.push_front(Step::Never);
                Poll::Pending
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.steps.is_empty() && self.length.is_none_or(|length| length == 0)
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

/// A server in memory, which makes the response to each arrival by its number, from 1.
#[derive(Clone)]
pub(crate) struct Origin {
    make: Arc<dyn Fn(usize) -> Response<Scripted> + Send + Sync>,
    arrivals: Arc<AtomicUsize>,
}

impl Origin {
    pub(crate) fn new(make: impl Fn(usize) -> Response<Scripted> + Send + Sync + 'static) -> Self {
        Self { make: Arc::new(make), arrivals: Arc::default() }
    }

    pub(crate) fn count(&self) -> usize {
        self.arrivals.load(Ordering::SeqCst)
    }
}

impl<B> Service<Request<B>> for Origin {
    type Response = Response<Scripted>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Response<Scripted>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Self::Future {
        let arrival = self.arrivals.fetch_add(1, Ordering::SeqCst) + 1;
        std::future::ready(Ok((self.make)(arrival)))
    }
}

pub(crate) fn response(status: u16, body: Scripted) -> Response<Scripted> {
    Response::builder().status(status).body(body).unwrap()
}

/// Three attempts without delays.
pub(crate) fn retries() -> RetryLayer<RetryPolicy<Http, Constant>> {
    let policy = RetryPolicy::http().budget(RetryBudget::unlimited()).backoff(Constant::new(Duration::ZERO));
    RetryLayer::new(policy)
}

pub(crate) fn request(method: &str, url: &str) -> Request<Full> {
    let body = if method == "GET" { Full::default() } else { Full::from("order") };
    Request::builder().method(method).uri(url).body(body).unwrap()
}

pub(crate) fn get() -> Request<Full> {
    request("GET", "http://one.example/")
}
