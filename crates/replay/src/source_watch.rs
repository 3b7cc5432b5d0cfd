//! Watches on the caller's body, which show if it is what an upload waits for.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A watch on the caller's body, from [`ReplayBody::watch_source`](crate::ReplayBody::watch_source).
///
/// Use it in a layer with a time limit, to find out if the server or the caller was slow. A watch does not read, keep
/// or delay any frames. Clones watch the same body.
///
/// ```
/// # use std::pin::pin;
/// # use std::task::{Context, Waker};
/// # use bytes::Bytes;
/// # use http_body::{Body, Frame};
/// # use reattempt_replay::{ReplayBody, ReplayLimits};
/// # struct Slow;
/// # impl Body for Slow {
/// #     type Data = Bytes;
/// #     type Error = std::convert::Infallible;
/// #     fn poll_frame(self: std::pin::Pin<&mut Self>, _: &mut Context<'_>)
/// #     -> std::task::Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
/// #         std::task::Poll::Pending
/// #     }
/// # }
/// let upload = ReplayBody::new(Slow, &ReplayLimits::default());
/// let source = upload.watch_source().expect("the body is streamed");
/// assert!(!source.is_pending(), "no client has polled it");
/// let mut upload = pin!(upload);
/// assert!(upload.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())).is_pending());
/// assert!(source.is_pending());
/// ```
#[derive(Clone)]
pub struct SourceWatch(Arc<AtomicBool>);

impl SourceWatch {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// Returns `true` if the last poll of the caller's body returned `Pending`.
    ///
    /// While a client does not poll the body, for example because the server does not read the upload (flow control),
    /// the result does not change.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub(super) fn set(&self, pending: bool) {
        self.0.store(pending, Ordering::Relaxed);
    }
}

impl fmt::Debug for SourceWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SourceWatch").field("is_pending", &self.is_pending()).finish()
    }
}
