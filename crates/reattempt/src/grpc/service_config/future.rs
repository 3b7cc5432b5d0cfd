//! The future of a call, which is either retried or hedged.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use http::Response;
use http_body::Body;
use pin_project_lite::pin_project;
use reattempt_core::Budget;
use reattempt_grpc::{Code, NoServiceConfig, RetryThrottle};
use reattempt_schedule_exponential::Exponential;
use tower_service::Service;

use crate::error_mode::{Answered, ErrorMode};
use crate::grpc::errors::Unanswered;
use crate::grpc::{Grpc, GrpcBody};
use crate::hedge::ResponseFuture as HedgeFuture;
use crate::protocol::{ClassifyOutcome, Replay};
use crate::retry::ResponseFuture as RetryFuture;

type Retried<S, Req, Budgets> = RetryFuture<S, Req, Grpc, Exponential, Budgets, Answered>;
type Hedged<S, Req, Budgets> = HedgeFuture<S, Req, Grpc, Budgets, Answered>;

pin_project! {
    /// The future of a call that is retried or hedged according to a service config.
    ///
    /// # Cancel safety
    /// Dropping the future cancels all attempts and the wait. The token for an attempt that was not sent yet returns to
    /// the throttle.
    #[must_use = "futures do nothing unless polled"]
    pub struct ResponseFuture<S, Req, Budgets = RetryThrottle>
    where
        Grpc: Replay<Req>,
        Grpc: ClassifyOutcome<S::Response>,
        S: Service<<Grpc as Replay<Req>>::Attempt>,
        Answered: ErrorMode<S::Error>,
    {
        #[pin]
        way: Way<S, Req, Budgets>,
    }
}

pin_project! {
    #[project = WayProjected]
    enum Way<S, Req, Budgets>
    where
        Grpc: Replay<Req>,
        Grpc: ClassifyOutcome<S::Response>,
        S: Service<<Grpc as Replay<Req>>::Attempt>,
        Answered: ErrorMode<S::Error>,
    {
        Retried { #[pin] future: Retried<S, Req, Budgets> },
        Hedged { #[pin] future: Hedged<S, Req, Budgets> },
        // `None` once the response has been returned.
        Refused { none: Option<NoServiceConfig> },
    }
}

impl<S, Req, Budgets> ResponseFuture<S, Req, Budgets>
where
    Grpc: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<<Grpc as Replay<Req>>::Attempt>,
    Answered: ErrorMode<S::Error>,
{
    pub(super) fn retried(future: Retried<S, Req, Budgets>) -> Self {
        Self { way: Way::Retried { future } }
    }

    pub(super) fn hedged(future: Hedged<S, Req, Budgets>) -> Self {
        Self { way: Way::Hedged { future } }
    }

    #[cold]
    pub(super) fn refused(none: NoServiceConfig) -> Self {
        Self { way: Way::Refused { none: Some(none) } }
    }
}

impl<S, Req, B, Budgets> Future for ResponseFuture<S, Req, Budgets>
where
    Budgets: Budget,
    Grpc: Replay<Req> + ClassifyOutcome<Response<B>, Answer = Response<GrpcBody<B>>>,
    S: Service<<Grpc as Replay<Req>>::Attempt, Response = Response<B>> + Clone,
    B: Body,
    Answered: ErrorMode<S::Error, Error = S::Error>,
{
    type Output = Result<Response<GrpcBody<B>>, S::Error>;

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

impl<S, Req, Budgets> fmt::Debug for ResponseFuture<S, Req, Budgets>
where
    Grpc: Replay<Req> + ClassifyOutcome<S::Response>,
    S: Service<<Grpc as Replay<Req>>::Attempt>,
    Answered: ErrorMode<S::Error>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let way: &dyn fmt::Debug = match &self.way {
            Way::Retried { future } => future,
            Way::Hedged { future } => future,
            Way::Refused { none } => none,
        };
        f.debug_tuple("ResponseFuture").field(way).finish()
    }
}
