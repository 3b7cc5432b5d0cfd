//! The inner clients: in memory, most of them ready at once.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
#[cfg(feature = "guards")]
use std::io;
#[cfg(any(feature = "bodies", feature = "layers"))]
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
#[cfg(feature = "bodies")]
use std::task::Waker;
use std::task::{Context, Poll};
#[cfg(feature = "layers")]
use std::time::Duration;

use bytes::Bytes;
#[cfg(feature = "peers")]
use http::Extensions;
use http::{Request, Response, StatusCode};
#[cfg(feature = "bodies")]
use http_body::Body;
use http_body_util::Empty;
#[cfg(feature = "peers")]
use reqwest_middleware::{Middleware, Next};
#[cfg(feature = "layers")]
use tokio::time::{Sleep, sleep};
use tower_service::Service;

/// The response of the inner services.
pub(crate) type Answer = Response<Empty<Bytes>>;

fn answer(status: StatusCode) -> Answer {
    let mut answer = Response::new(Empty::new());
    *answer.status_mut() = status;
    answer
}

/// A service that answers every request with 200.
#[derive(Debug, Clone)]
pub(crate) struct Answers;

impl<B> Service<Request<B>> for Answers {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        drop(black_box(request));
        ready(Ok(answer(StatusCode::OK)))
    }
}

/// A service that answers 200 after it has read the body, which must not be missing.
#[cfg(feature = "bodies")]
#[derive(Debug, Clone)]
pub(crate) struct Reads;

#[cfg(feature = "bodies")]
impl<B: Body + Unpin> Service<Request<B>> for Reads {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let mut context = Context::from_waker(Waker::noop());
        let body = request.body_mut();
        while !body.is_end_stream()
            && let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut *body).poll_frame(&mut context)
        {
            drop(black_box(frame));
        }
        drop(black_box(request));
        ready(Ok(answer(StatusCode::OK)))
    }
}

/// A server that answers with 200, or refuses connections.
#[cfg(feature = "guards")]
#[derive(Debug, Clone)]
pub(crate) struct MayRefuse(pub(crate) bool);

#[cfg(feature = "guards")]
impl<B> Service<Request<B>> for MayRefuse {
    type Response = Answer;
    type Error = io::Error;
    type Future = Ready<Result<Answer, io::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        drop(black_box(request));
        ready(match self.0 {
            true => Err(io::ErrorKind::ConnectionRefused.into()),
            false => Ok(answer(StatusCode::OK)),
        })
    }
}

/// A service that answers 503 and 200 by turns; clones share the turns.
#[derive(Debug, Clone, Default)]
pub(crate) struct FailsFirst {
    calls: Arc<AtomicU64>,
}

impl FailsFirst {
    /// Returns the number of calls so far.
    pub(crate) fn calls(&self) -> u64 {
        self.calls.load(Ordering::Relaxed)
    }

    fn next_status(&self) -> StatusCode {
        match self.calls.fetch_add(1, Ordering::Relaxed) % 2 {
            0 => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        }
    }
}

impl<B> Service<Request<B>> for FailsFirst {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        drop(black_box(request));
        ready(Ok(answer(self.next_status())))
    }
}

/// A service that answers every request with 503.
#[cfg(feature = "peers")]
#[derive(Debug, Clone)]
pub(crate) struct Fails;

#[cfg(feature = "peers")]
impl<B> Service<Request<B>> for Fails {
    type Response = Answer;
    type Error = Infallible;
    type Future = Ready<Result<Answer, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> Self::Future {
        drop(black_box(request));
        ready(Ok(answer(StatusCode::SERVICE_UNAVAILABLE)))
    }
}

/// A service that answers 200 at the second poll, as a client with a network below it does. Its
/// first calls take [`SLOW`](Self::SLOW), for contenders that observe latencies.
#[cfg(feature = "layers")]
#[derive(Debug, Clone)]
pub(crate) struct AnswersLater {
    slow_calls: Arc<AtomicU64>,
}

#[cfg(feature = "layers")]
impl AnswersLater {
    pub(crate) const SLOW: Duration = Duration::from_millis(50);

    pub(crate) fn new(slow_calls: u64) -> Self {
        Self { slow_calls: Arc::new(AtomicU64::new(slow_calls)) }
    }
}

#[cfg(feature = "layers")]
impl<B> Service<Request<B>> for AnswersLater {
    type Response = Answer;
    type Error = Infallible;
    type Future = Later;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    #[inline(never)]
    fn call(&mut self, request: Request<B>) -> Later {
        drop(black_box(request));
        let one_less = |calls: u64| calls.checked_sub(1);
        let slow = self.slow_calls.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
        match slow {
            Ok(_) => Later::Asleep(Box::pin(sleep(Self::SLOW))),
            Err(_) => Later::NotPolled,
        }
    }
}

/// The future of [`AnswersLater`].
#[cfg(feature = "layers")]
#[derive(Debug)]
pub(crate) enum Later {
    Asleep(Pin<Box<Sleep>>),
    NotPolled,
    Polled,
}

#[cfg(feature = "layers")]
impl Future for Later {
    type Output = Result<Answer, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Asleep(sleep) => sleep.as_mut().poll(cx).map(|()| Ok(answer(StatusCode::OK))),
            Self::Polled => Poll::Ready(Ok(answer(StatusCode::OK))),
            Self::NotPolled => {
                *self = Self::Polled;
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

/// A service that never answers and holds the request meanwhile, as a client does while it sends.
#[cfg(feature = "peers")]
#[derive(Debug, Clone)]
pub(crate) struct Holds;

#[cfg(feature = "peers")]
impl<B> Service<Request<B>> for Holds {
    type Response = Answer;
    type Error = Infallible;
    type Future = Held<B>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Held<B> {
        Held { _request: request }
    }
}

/// The request of a call in flight.
#[cfg(feature = "peers")]
#[derive(Debug)]
pub(crate) struct Held<B> {
    _request: Request<B>,
}

#[cfg(feature = "peers")]
impl<B> Future for Held<B> {
    type Output = Result<Answer, Infallible>;

    // No waker is kept: the held calls are counted and dropped.
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Pending
    }
}

#[cfg(feature = "peers")]
/// [`Answers`] at the end of a reqwest-middleware chain; no request reaches a network.
#[derive(Debug)]
pub(crate) struct Terminal;

#[cfg(feature = "peers")]
#[async_trait::async_trait]
impl Middleware for Terminal {
    async fn handle(
        &self,
        request: reqwest::Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        drop(black_box(request));
        Ok(Response::new("").into())
    }
}

#[cfg(feature = "peers")]
/// [`FailsFirst`] at the end of a reqwest-middleware chain.
#[derive(Debug, Default)]
pub(crate) struct TerminalFailsFirst(pub(crate) FailsFirst);

#[cfg(feature = "peers")]
#[async_trait::async_trait]
impl Middleware for TerminalFailsFirst {
    async fn handle(
        &self,
        request: reqwest::Request,
        _: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        drop(black_box(request));
        let mut response = Response::new("");
        *response.status_mut() = self.0.next_status();
        Ok(response.into())
    }
}
