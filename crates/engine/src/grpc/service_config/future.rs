//! The future of a call, which is either retried or hedged.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use pin_project_lite::pin_project;
use reattempt_grpc::{Code, NoServiceConfig};

use crate::grpc::GrpcBody;
use crate::grpc::errors::Unanswered;

pin_project! {
    /// The future of a call that is retried or hedged according to a service config.
    ///
    /// # Cancel safety
    /// Dropping the future cancels all attempts and the wait before the next one. The token for an attempt that was not
    /// yet sent is returned to the throttle.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<Retried, Hedged> {
        #[pin]
        way: Way<Retried, Hedged>,
    }
}

pin_project! {
    #[project = WayProjected]
    enum Way<Retried, Hedged> {
        Retried { #[pin] future: Retried },
        Hedged { #[pin] future: Hedged },
        // `None` once the response has been returned.
        Refused { none: Option<NoServiceConfig> },
    }
}

impl<Retried, Hedged> ResponseFuture<Retried, Hedged> {
    pub(super) fn retried(future: Retried) -> Self {
        Self { way: Way::Retried { future } }
    }

    pub(super) fn hedged(future: Hedged) -> Self {
        Self { way: Way::Hedged { future } }
    }

    #[cold]
    pub(super) fn refused(none: NoServiceConfig) -> Self {
        Self { way: Way::Refused { none: Some(none) } }
    }
}

impl<Retried, Hedged, B, E> Future for ResponseFuture<Retried, Hedged>
where
    Retried: Future<Output = Result<Response<GrpcBody<B>>, E>>,
    Hedged: Future<Output = Retried::Output>,
{
    type Output = Retried::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project().way.project() {
            WayProjected::Retried { future } => future.poll(cx),
            WayProjected::Hedged { future } => future.poll(cx),
            WayProjected::Refused { none } => match none.take() {
                None => Poll::Pending,
                Some(none) => {
                    let causes = none.errors().map(|errors| format!(": {errors}"));
                    let text = format!("{none}{}", causes.unwrap_or_default());
                    Poll::Ready(Ok(GrpcBody::answering(Code::Unavailable, &text, Unanswered::NOT_SENT)))
                }
            },
        }
    }
}

impl<Retried: fmt::Debug, Hedged: fmt::Debug> fmt::Debug for ResponseFuture<Retried, Hedged> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way: &dyn fmt::Debug = match &self.way {
            Way::Retried { future } => future,
            Way::Hedged { future } => future,
            Way::Refused { none } => none,
        };
        f.debug_tuple("ResponseFuture").field(way).finish()
    }
}
