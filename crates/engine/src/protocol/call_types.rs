//! The types of a retried or hedged call, bundled into one type parameter whose bounds are written once.

use std::marker::PhantomData;

use reattempt_core::Budget;
use tower_service::Service;

use super::{ClassifyOutcome, Protocol, Replay, Saved};
use crate::error_mode::ErrorMode;

/// The types of a call.
pub(crate) trait CallTypes {
    type Request;
    /// The inner service's request type, and its parts: the head and the rest.
    type Attempt;
    type Head: Send + 'static;
    type Rest;
    /// The inner service's response and error types.
    type Response;
    type ServiceError;
    type Future: Future<Output = Result<Self::Response, Self::ServiceError>>;
    type Service: Service<Self::Attempt, Response = Self::Response, Error = Self::ServiceError, Future = Self::Future>
        + Clone;
    type Saved: Saved;
    type Drain: Future<Output = ()>;
    /// The caller's response and error types.
    type Answer;
    type Error;
    type Protocol: Protocol<Head = Self::Head>
        + Replay<Self::Request, Attempt = Self::Attempt, Saved = Self::Saved, Rest = Self::Rest>
        + ClassifyOutcome<Self::Response, Drain = Self::Drain, Answer = Self::Answer>;
    type Timer: Default;
    type Mode: ErrorMode<Self::ServiceError, Error = Self::Error, Timer = Self::Timer>;
    /// The retry schedule, or the settings that only hedges have.
    type Strategy;
    type Budget: Budget;
}

/// The result of an attempt.
pub(crate) type ResultOf<T> = Result<<T as CallTypes>::Response, <T as CallTypes>::Error>;

/// The result that the caller of a call gets.
pub(crate) type AnswerOf<T> = Result<<T as CallTypes>::Answer, <T as CallTypes>::Error>;

/// The types of a call through the service `S`.
pub(crate) struct Types<S, Req, P, Strategy, B, Mode>(PhantomData<(S, Req, P, Strategy, B, Mode)>);

impl<S, Req, P, Strategy, B, Mode> CallTypes for Types<S, Req, P, Strategy, B, Mode>
where
    S: Service<P::Attempt> + Clone,
    P: Replay<Req> + ClassifyOutcome<S::Response>,
    B: Budget,
    Mode: ErrorMode<S::Error>,
{
    type Request = Req;
    type Attempt = P::Attempt;
    type Head = P::Head;
    type Rest = P::Rest;
    type Response = S::Response;
    type ServiceError = S::Error;
    type Future = S::Future;
    type Service = S;
    type Saved = P::Saved;
    type Drain = P::Drain;
    type Answer = P::Answer;
    type Error = Mode::Error;
    type Protocol = P;
    type Timer = Mode::Timer;
    type Mode = Mode;
    type Strategy = Strategy;
    type Budget = B;
}
