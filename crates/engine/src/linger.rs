//! Late answers: a client that reads the answer of an attempt that a layer has dropped.
//!
//! **Over HTTP/2, dropped attempts can end the connection that all calls share.** Dropping an attempt resets its stream
//! while its answer may be on its way. h2, the library below hyper and reqwest, remembers 50 reset streams for a
//! second. It counts each frame for any other reset stream, and ends the connection after 1,024 of them
//! (`too_many_internal_resets`). The responses that are being read then break. h2 servers do the same to a client that
//! resets more than 20 streams before they are accepted.
//!
//! A client in a [`LingerLayer`] reads the answers instead, in the background. An attempt lingers if a layer of this
//! crate drops it after it was sent: the loser of a hedged call, or an attempt that exceeds a time limit. It has 50 ms
//! for its head and a body of at most 16 KiB, the default bounds for refused responses. Then its stream is reset.
//! Meanwhile it keeps its places in guards, and its share of the memory for request bodies.
//!
//! These attempts do not linger:
//!
//! - the attempts of a call that its caller drops;
//! - an attempt that still waits for its caller's body, and the losers of a call with a streamed body;
//! - attempts that are dropped outside a tokio runtime.
//!
//! | item | content |
//! |---|---|
//! | [`LingerLayer`], [`Lingering`], [`ResponseFuture`] | the middleware |

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tower_layer::Layer;
use tower_service::Service;

use crate::accessors::inner_accessors;
use crate::call::late_answers;
use crate::call::late_answers::LateAnswer;
use crate::protocol::{ClassifyOutcome, Http};

/// A layer that reads the late answers of dropped attempts.
///
/// Put it directly around the client, inside all other layers. It is not part of the other layers, because a background
/// task needs a future that is `Send`, `Unpin` and `'static`. Those of all clients in the [guide][guide] are.
///
/// A call through the layer allocates nothing, unless it lingers.
///
/// ```
/// use bytes::Bytes;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use reattempt::hedge::HedgeLayer;
/// use reattempt::linger::LingerLayer;
/// use tower::ServiceBuilder;
///
/// let client = ServiceBuilder::new()
///     .layer(HedgeLayer::http())
///     .layer(LingerLayer::new())
///     .service(Client::builder(TokioExecutor::new()).build_http());
/// # reattempt::check::<http::Request<Full<Bytes>>, _>(&client);
/// ```
///
/// [guide]: https://docs.rs/reattempt/latest/reattempt/guide/index.html
#[derive(Debug, Clone, Copy, Default)]
pub struct LingerLayer {}

impl LingerLayer {
    /// Creates the layer.
    pub fn new() -> Self {
        Self {}
    }
}

impl<S> Layer<S> for LingerLayer {
    type Service = Lingering<S>;

    fn layer(&self, inner: S) -> Lingering<S> {
        Lingering { inner }
    }
}

/// A client that reads the late answers of dropped attempts, created by [`LingerLayer`].
#[derive(Debug, Clone)]
pub struct Lingering<S> {
    inner: S,
}

impl<S> Lingering<S> {
    inner_accessors!(S, inner);
}

impl<S, Req> Service<Req> for Lingering<S>
where
    S: Service<Req>,
    S::Future: Unpin + Send + 'static,
    Http: ClassifyOutcome<S::Response, Drain: Send + 'static>,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Req) -> Self::Future {
        let attempt = Some(self.inner.call(request));
        ResponseFuture { attempt, is_sent: false, linger: late_answer::<S::Future, S::Response, S::Error> }
    }
}

/// The future of an attempt whose answer may be late.
///
/// If it is polled again after completion, it stays pending.
///
/// # Cancel safety
///
/// Dropping the future cancels the attempt. If a layer of this crate drops it, the attempt lingers first.
#[must_use = "futures do nothing unless polled"]
pub struct ResponseFuture<F> {
    attempt: Option<F>,
    is_sent: bool,
    linger: fn(F) -> LateAnswer,
}

impl<F: Future + Unpin> Future for ResponseFuture<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        self.is_sent = true;
        let Some(attempt) = &mut self.attempt else { return Poll::Pending };
        let output = ready!(Pin::new(attempt).poll(cx));
        self.attempt = None;
        Poll::Ready(output)
    }
}

impl<F> Drop for ResponseFuture<F> {
    fn drop(&mut self) {
        if self.is_sent
            && self.attempt.is_some()
            && late_answers::is_leaving()
            && let Some(attempt) = self.attempt.take()
        {
            late_answers::expect((self.linger)(attempt));
        }
    }
}

impl<F> fmt::Debug for ResponseFuture<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("is_sent", &self.is_sent).finish_non_exhaustive()
    }
}

/// Returns a future that waits for the answer of an attempt, and reads a short body.
fn late_answer<F, R, E>(attempt: F) -> LateAnswer
where
    F: Future<Output = Result<R, E>> + Send + 'static,
    Http: ClassifyOutcome<R, Drain: Send + 'static>,
{
    Box::pin(async move {
        let drain = match attempt.await {
            Ok(response) => Http::new().drain(response).0,
            Err(_) => return,
        };
        drain.await;
    })
}
