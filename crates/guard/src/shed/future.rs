//! The future of a call to a server that sheds load.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use http::Request;
use pin_project_lite::pin_project;
use reattempt_core::guard::Guard;
use reattempt_engine::error::ErrorMode;
use tower_service::Service;

use super::{Gauge, ShedProtocol};
use crate::contract;

pin_project! {
    /// The future of a call to a server that sheds load.
    ///
    /// # Cancel safety
    /// Dropping the future cancels the call and frees its place.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, A, F, G: Guard, P, Mode> {
        #[pin]
        pub(super) call: contract::ResponseFuture<S, Request<A>, F, G, P, Mode>,
        pub(super) gauge: Arc<Gauge>,
    }
}

impl<S, A, G, P, Mode> Future for ResponseFuture<S, A, S::Future, G, P, Mode>
where
    S: Service<Request<A>>,
    G: Guard,
    P: ShedProtocol<S::Response, S::Error, Mode>,
    Mode: ErrorMode<S::Error>,
{
    type Output = Result<P::Shed<G>, S::Error>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let result = ready!(this.call.poll(cx));
        Poll::Ready(P::shed(result, this.gauge))
    }
}

impl<S, A, F, G: Guard, P, Mode> fmt::Debug for ResponseFuture<S, A, F, G, P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResponseFuture").field("call", &self.call).finish_non_exhaustive()
    }
}
