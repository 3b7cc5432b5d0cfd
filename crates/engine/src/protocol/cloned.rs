//! The protocol for `Clone` requests, with a function that classifies outcomes.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::future::{Ready, ready};

use reattempt_core::Classification;

use super::{Added, ClassifyOutcome, NextAttempt, Origin, OutcomeFacts, Protocol, Replay, Saved, errors, proof};
use crate::call::options::CallOptions;
use crate::call::report::Report;
use crate::call::timed_out::{RefusedResponse, TimedOut};
use crate::error_mode::OwnError;

/// A protocol for requests of any `Clone` type, with a function that classifies outcomes. A retry layer clones the
/// request for each attempt.
///
/// [`RetryPolicy::cloned`](crate::RetryPolicy::cloned) and
/// [`GuardLayer::classified`][classified] create it.
///
/// [classified]: https://docs.rs/reattempt/latest/reattempt/guard/struct.GuardLayer.html#method.classified
#[derive(Clone)]
pub struct CloneRequest<C> {
    classify: C,
}

impl<C> CloneRequest<C> {
    #[doc(hidden)]
    pub fn new(classify: C) -> Self {
        Self { classify }
    }
}

impl<C: Send + Sync + 'static> Protocol for CloneRequest<C> {
    type Head = ();
    type Mode = OwnError;
}

/// A saved clone of the request.
#[derive(Clone)]
pub struct SavedClone<Request>(Request);

impl<Request> Saved for SavedClone<Request> {
    type Body = Infallible;
}

/// The output omits the request, which may contain credentials.
impl<Request> fmt::Debug for SavedClone<Request> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedClone").finish_non_exhaustive()
    }
}

impl<Request: Clone, C: Send + Sync + 'static> Replay<Request> for CloneRequest<C> {
    type Attempt = Request;
    type Saved = SavedClone<Request>;
    type Rest = Request;

    fn forward(&self, request: Request, _: Added<'_>) -> Request {
        request
    }

    fn save(&self, request: Request, _: Added<'_>, saved: &mut Option<SavedClone<Request>>) -> Request {
        *saved = Some(SavedClone(request.clone()));
        request
    }

    fn again(&self, saved: Self::Saved, next: NextAttempt, further: &mut Option<Self::Saved>) -> Request {
        *further = (!next.last).then(|| saved.clone());
        saved.0
    }

    fn split(&self, attempt: Request) -> ((), Request) {
        ((), attempt)
    }

    fn join(&self, (): (), rest: Request) -> Request {
        rest
    }
}

impl<Attempt, C> Origin<Attempt> for CloneRequest<C> {
    type Request = Attempt;
}

impl<Response, C, V> ClassifyOutcome<Response> for CloneRequest<C>
where
    C: Fn(Result<&Response, &(dyn Error + 'static)>) -> V + Send + Sync + 'static,
    V: Into<Classification>,
{
    type Drain = Ready<()>;
    type Answer = Response;

    fn classify_outcome(
        &self,
        outcome: Result<&Response, &(dyn Error + 'static)>,
        _: Option<&CallOptions>,
        _: Option<&impl Saved>,
    ) -> Classification {
        match outcome {
            // A timeout of this policy is not an outcome of the service.
            Err(error) if error.is::<TimedOut>() => errors::verdict_of_error(error).into(),
            Err(error) if errors::refusal_in(error).is_some() && !proof::is_from_fallback(Err(error)) => {
                errors::not_sent()
            }
            outcome => (self.classify)(outcome).into(),
        }
    }

    fn facts(&self, outcome: Result<&Response, &(dyn Error + 'static)>) -> OutcomeFacts {
        OutcomeFacts::of_any(outcome.err())
    }

    fn drain(&self, _: Response) -> (Ready<()>, Option<RefusedResponse>) {
        (ready(()), None)
    }

    fn attach(&self, _: &mut Response, _: Report) {}

    #[inline]
    fn answer(response: Response, _: bool) -> Response {
        response
    }
}

impl<C> fmt::Debug for CloneRequest<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CloneRequest").finish_non_exhaustive()
    }
}
