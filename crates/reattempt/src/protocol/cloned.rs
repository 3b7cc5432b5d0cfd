//! Any `Clone` request of any service, judged by a function.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::future::{Ready, ready};

use reattempt_core::{Judgement, Verdict};

use super::{Added, Admitted, Carry, Judge, Kept, NextAttempt, Origin, Protocol, errors};
use crate::error_mode::OwnError;
use crate::{CallOptions, RefusedResponse, Report, TimedOut};

/// A service whose requests are simply cloned, with the function that judges its outcomes.
#[derive(Clone)]
pub struct Cloned<C> {
    judge: C,
}

impl<C> Cloned<C> {
    pub(crate) fn new(judge: C) -> Self {
        Self { judge }
    }
}

impl<C: Send + Sync + 'static> Protocol for Cloned<C> {
    type Head = ();
    type Mode = OwnError;
}

/// A clone of the request.
#[derive(Clone)]
pub struct KeptClone<Request>(Request);

impl<Request> Kept for KeptClone<Request> {}

/// Without the request, which may contain credentials.
impl<Request> fmt::Debug for KeptClone<Request> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptClone").finish_non_exhaustive()
    }
}

impl<Request: Clone, C: Send + Sync + 'static> Carry<Request> for Cloned<C> {
    type Attempt = Request;
    type Kept = KeptClone<Request>;
    type Rest = Request;

    fn wants_nothing(&self, _: &Request) -> bool {
        true
    }

    fn admit(&self, _: &KeptClone<Request>) -> Admitted {
        Admitted { carry: true, repeatable: true, keyed: false }
    }

    fn target<'a>(&self, _: &'a Request) -> Cow<'a, str> {
        "".into()
    }

    fn pass(&self, request: Request, _: Added<'_>) -> Request {
        request
    }

    fn keep(
        &self,
        request: Request,
        _: Added<'_>,
        kept: &mut Option<KeptClone<Request>>,
    ) -> Request {
        *kept = Some(KeptClone(request.clone()));
        request
    }

    fn again(&self, kept: &mut Option<KeptClone<Request>>, next: NextAttempt) -> Option<Request> {
        let attempt = if next.last { kept.take() } else { kept.clone() };
        attempt.map(|kept| kept.0)
    }

    fn destination<'a>(&self, _: &'a KeptClone<Request>) -> Cow<'a, str> {
        "".into()
    }

    fn split(&self, attempt: Request) -> ((), Request) {
        ((), attempt)
    }

    fn join(&self, (): (), rest: Request) -> Request {
        rest
    }
}

impl<Attempt, C> Origin<Attempt> for Cloned<C> {
    type Request = Attempt;
}

impl<Response, C> Judge<Response> for Cloned<C>
where
    C: Fn(Result<&Response, &(dyn Error + 'static)>) -> Verdict + Send + Sync + 'static,
{
    type Discard = Ready<()>;
    type Answer = Response;

    fn judge(
        &self,
        outcome: Result<&Response, &(dyn Error + 'static)>,
        _: Option<&CallOptions>,
        _: impl FnOnce() -> bool,
    ) -> Judgement {
        match outcome {
            // Not an outcome of the service: a limit that this policy has set.
            Err(error) if error.is::<TimedOut>() => errors::verdict_of_error(error).into(),
            outcome => (self.judge)(outcome).into(),
        }
    }

    fn discard(&self, _: Response) -> (Ready<()>, Option<RefusedResponse>) {
        (ready(()), None)
    }

    fn attach(&self, _: &mut Response, _: Report) {}

    #[inline]
    fn answer(response: Response, _: bool) -> Response {
        response
    }
}

impl<C> fmt::Debug for Cloned<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cloned").finish_non_exhaustive()
    }
}
