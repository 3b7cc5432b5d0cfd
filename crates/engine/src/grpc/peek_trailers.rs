//! Retries of errors that a server sends as headers followed by trailers. By default, such headers end the retries
//! before the status is known.
//!
//! [`PeekTrailersLayer`] waits for the first frame of each response. If that frame is trailers with a status, they
//! become part of the head, and the retry layer classifies them. If the body breaks or ends instead, the attempt is a
//! lost connection. Every other response is passed on unchanged.

// ST-5

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{HeaderName, Response};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use reattempt_grpc::{GRPC_MESSAGE, GRPC_RETRY_PUSHBACK_MS, GRPC_STATUS, GRPC_STATUS_DETAILS_BIN, code_of_head};
use reattempt_http::view_error;
use tokio::time::Sleep;
use tower_layer::Layer;
use tower_service::Service;

use super::errors::Unanswered;
use crate::accessors::inner_accessors;
use crate::call::clock;
use crate::call::in_use;

/// A layer that reads the first frame of each gRPC response, and adds it to the head if it is trailers.
///
/// Some servers, for example those built on Go's `net/http` (such as connect-go), send an error as headers followed by
/// trailers. Under gRPC's rules, such headers end the retries. Put this layer **inside** a
/// [`RetryLayer`](crate::RetryLayer) or a [`HedgeLayer`](crate::hedge::HedgeLayer) if the client calls such servers, or
/// calls through a proxy.
///
/// A proxy whose backend dies can send the head of a response and nothing more. Such a response, whose body breaks or
/// ends before its first frame, is classified as a lost connection. It is retried if the call is repeatable, and the
/// caller of the last attempt gets it unchanged. A response that breaks later is the caller's.
///
/// # Cost
/// A response without a `grpc-status` in its head is **delayed until its first frame arrives, or until `within` has
/// passed**. No frame is lost. In bidirectional streams, some servers send headers and then wait for the client. Each
/// such response is delayed by `within`, so keep `within` short, or send such calls through another client. A timer is
/// created only if the frame does not arrive with the head.
///
/// # At run time
/// [`set_enabled`](Self::set_enabled) turns the layer off and on for later calls.
///
/// # Cancel safety
/// Dropping the future drops a response that it holds.
///
/// ```
/// use std::time::Duration;
/// use reattempt::RetryLayer;
/// use reattempt::grpc::peek_trailers::PeekTrailersLayer;
/// use tower::ServiceBuilder;
///
/// # let channel = tower::service_fn(|_: ()| async { Ok::<_, std::convert::Infallible>(()) });
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::grpc())
///     .layer(PeekTrailersLayer::new(Duration::from_millis(50)))
///     .service(channel);
/// ```
#[derive(Debug, Clone)]
pub struct PeekTrailersLayer {
    within: Duration,
    /// Shared by all clones of the layer and their services.
    disabled: Arc<AtomicBool>,
}

impl PeekTrailersLayer {
    /// Creates a layer that delays a response for at most `within`.
    pub fn new(within: Duration) -> Self {
        in_use::BODIES.begin();
        Self { within, disabled: Arc::default() }
    }

    /// Turns the layer on or off, for all its clones and their services. Default: on.
    ///
    /// The change applies to new calls. A call in flight is not affected.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt::grpc::peek_trailers::PeekTrailersLayer;
    ///
    /// let peeking = PeekTrailersLayer::new(Duration::from_millis(50));
    /// let switch = peeking.clone();
    /// // A new version of the server sends errors in the headers.
    /// switch.set_enabled(false);
    /// assert!(!peeking.is_enabled());
    /// ```
    pub fn set_enabled(&self, enabled: bool) {
        self.disabled.store(!enabled, Ordering::Relaxed);
    }

    /// Returns `true` if the layer is on.
    pub fn is_enabled(&self) -> bool {
        !self.disabled.load(Ordering::Relaxed)
    }
}

impl<S> Layer<S> for PeekTrailersLayer {
    type Service = PeekTrailers<S>;

    fn layer(&self, inner: S) -> PeekTrailers<S> {
        PeekTrailers { inner, layer: self.clone() }
    }
}

/// The service of [`PeekTrailersLayer`].
#[derive(Debug, Clone)]
pub struct PeekTrailers<S> {
    inner: S,
    layer: PeekTrailersLayer,
}

impl<S> PeekTrailers<S> {
    inner_accessors!(S, inner);
}

impl<S, Request, B> Service<Request> for PeekTrailers<S>
where
    S: Service<Request, Response = Response<B>>,
    B: Body<Error: 'static> + Unpin,
{
    type Response = Response<PeekTrailersBody<B>>;
    type Error = S::Error;
    type Future = ResponseFuture<S::Future, B>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request) -> Self::Future {
        let attempt = self.inner.call(request);
        let within = self.layer.is_enabled().then_some(self.layer.within);
        ResponseFuture { attempt, held: None, within, sleep: None }
    }
}

pin_project! {
    /// The future of [`PeekTrailers`].
    #[project = Projection]
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<F, B> {
        #[pin]
        attempt: F,
        // The response whose first frame has not arrived yet.
        held: Option<Response<B>>,
        // `None` if the layer was off when the call started.
        within: Option<Duration>,
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl<F, B, E> Future for ResponseFuture<F, B>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Error: 'static> + Unpin,
{
    type Output = Result<Response<PeekTrailersBody<B>>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let mut response = match this.held.take() {
            Some(response) => response,
            None => {
                let response = ready!(this.attempt.as_mut().poll(cx))?;
                if this.within.is_none() || response.headers().contains_key(GRPC_STATUS) {
                    return Poll::Ready(Ok(response.map(PeekTrailersBody::unread)));
                }
                response
            }
        };
        let first = match Pin::new(response.body_mut()).poll_frame(cx) {
            Poll::Ready(first) => First::Read(first),
            Poll::Pending if clock::poll_held(&mut this.sleep, this.within.unwrap_or_default(), cx).is_ready() => {
                First::Unread
            }
            Poll::Pending => {
                *this.held = Some(response);
                return Poll::Pending;
            }
        };
        Poll::Ready(Ok(peeked(response, first)))
    }
}

/// The headers that may accompany a status.
const OF_A_STATUS: [HeaderName; 3] = [GRPC_MESSAGE, GRPC_STATUS_DETAILS_BIN, GRPC_RETRY_PUSHBACK_MS];

/// Returns the response with its peeked frame.
fn peeked<B: Body<Error: 'static>>(
    response: Response<B>,
    first: First<B::Data, B::Error>,
) -> Response<PeekTrailersBody<B>> {
    let (mut head, inner) = response.into_parts();
    let broke = match &first {
        First::Read(None) => Some(Unanswered::CUT_OFF),
        First::Read(Some(Err(error))) => Some(view_error(error).map_or(Unanswered::CUT_OFF, Unanswered::of_body)),
        _ => None,
    };
    // Any other head is an outcome of its own.
    if let Some(broke) = broke
        && code_of_head(head.status, &head.headers).is_none()
    {
        head.extensions.insert(broke);
    }
    let first = match first {
        First::Read(Some(Ok(frame))) => match frame.into_trailers() {
            // A header map has a size limit, which a server's trailers could exceed.
            Ok(trailers) if trailers.contains_key(GRPC_STATUS) && head.headers.try_reserve(trailers.len()).is_ok() => {
                // Status headers in the head are ignored if the status comes in the trailers (PB-1).
                for name in OF_A_STATUS {
                    head.headers.remove(name);
                }
                // If a name is in both, the trailers' value wins.
                head.headers.extend(trailers);
                First::Read(None)
            }
            Ok(trailers) => First::Read(Some(Ok(Frame::trailers(trailers)))),
            Err(frame) => First::Read(Some(Ok(frame))),
        },
        first => first,
    };
    Response::from_parts(head, PeekTrailersBody { first, inner })
}

/// The state of a body's first frame.
enum First<D, E> {
    /// The first frame, an error or the end was read but not yet returned.
    Read(Option<Result<Frame<D>, E>>),
    /// Nothing has been read ahead, or it has already been returned.
    Unread,
}

pin_project! {
    /// A body whose first frame may have been read ahead.
    pub struct PeekTrailersBody<B: Body> {
        first: First<B::Data, B::Error>,
        #[pin]
        inner: B,
    }
}

impl<B: Body> PeekTrailersBody<B> {
    fn unread(inner: B) -> Self {
        Self { first: First::Unread, inner }
    }
}

impl<B: Body> Body for PeekTrailersBody<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let this = self.project();
        match std::mem::replace(this.first, First::Unread) {
            First::Unread => this.inner.poll_frame(cx),
            // The end is returned again.
            First::Read(None) => {
                *this.first = First::Read(None);
                Poll::Ready(None)
            }
            First::Read(first) => Poll::Ready(first),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.first {
            First::Unread => self.inner.is_end_stream(),
            First::Read(first) => first.is_none(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.first {
            First::Unread => self.inner.size_hint(),
            First::Read(None) => SizeHint::with_exact(0),
            // The inner body's hint does not include the frame that was already read.
            First::Read(Some(_)) => SizeHint::default(),
        }
    }
}

impl<F, B> fmt::Debug for ResponseFuture<F, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("held", &self.held.is_some()).finish_non_exhaustive()
    }
}

impl<B: Body> fmt::Debug for PeekTrailersBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = matches!(self.first, First::Read(_));
        f.debug_struct("PeekTrailersBody").field("first_read", &first).finish_non_exhaustive()
    }
}
