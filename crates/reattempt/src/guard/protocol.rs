//! The part of a protocol that guards need: facts of a request, health of an outcome, responses that hold a pass.

use std::borrow::Cow;
use std::error::Error;
use std::time::Duration;

use http::{HeaderMap, Request, Response, StatusCode};
use http_body::Body;
use reattempt_core::Classification;
use reattempt_core::guard::{BodyEnd, Guard, Health, Refused};
use tower::BoxError;

use super::body::GuardedBody;
use super::health::{self, Judged, UNAVAILABLE_STATUSES, of_classification};
use super::pass::Pass;
use crate::call::deadline::Deadline;
use crate::call::options::CallOptions;
use crate::call::request_terms::Impatient;
use crate::call::timed_out::{TimeLimit, TimedOut};
use crate::error_mode::{BoxedError, ErrorMode};
use crate::protocol::witness::Testimony;
use crate::protocol::{ClassifyOutcome, CloneRequest, Http, Protocol, SavedClone, host};

/// A protocol whose requests of type `Request` can be guarded. Sealed.
#[diagnostic::on_unimplemented(
    message = "this `GuardLayer` cannot guard a request of type `{Request}`",
    note = "`GuardLayer::http(…)` guards `http::Request<B>`, and `reqwest::Request` with the feature `reqwest`; `GuardLayer::classified(…)` guards any request"
)]
pub trait Guardable<Request>: GuardProtocol {
    /// Returns the deadline that travels with the request.
    #[doc(hidden)]
    fn deadline(&self, request: &Request) -> Option<Deadline>;

    /// Returns the share of a fallback around the layer that learns of a refusal, if there is one.
    #[doc(hidden)]
    fn testimony(&self, request: &Request) -> Option<Testimony> {
        let _ = request;
        None
    }

    /// Returns what guards need of a request, besides its deadline.
    #[doc(hidden)]
    fn facts<'a>(&self, request: &'a Request) -> Facts<'a>;
}

/// A protocol whose attempts guards can decide about. Sealed.
pub trait GuardProtocol: Protocol {
    /// The error mode of a guarded client: an [`ErrorMode`] with room for a refusal.
    type Errors;
}

impl GuardProtocol for Http {
    type Errors = BoxedError;
}

impl<C: Send + Sync + 'static> GuardProtocol for CloneRequest<C> {
    type Errors = BoxedError;
}

/// The facts of a request that guards need.
#[derive(Debug)]
pub struct Facts<'a> {
    pub(crate) destination: Cow<'a, str>,
    /// Boxed, because few calls have options and each future moves them.
    pub(crate) options: Option<Box<CallOptions>>,
    pub(crate) patient: bool,
}

impl Http {
    /// Returns the facts of a request of the `http` crate.
    #[inline]
    pub(crate) fn facts_of<'a, B>(&self, request: &'a Request<B>) -> Facts<'a> {
        let destination = self.destination_of(request.uri(), || host(request.headers()));
        if request.extensions().is_empty() && self.has_no_rule() {
            return Facts { destination, options: None, patient: true };
        }
        self.facts_of_extensions(request, destination)
    }

    #[inline(never)]
    fn facts_of_extensions<'a, B>(
        &self,
        request: &'a Request<B>,
        destination: Cow<'a, str>,
    ) -> Facts<'a> {
        let extensions = request.extensions();
        let own = extensions.get::<CallOptions>().cloned();
        let options = match (own, self.options_by_rule(request)) {
            (Some(own), Some(rule)) => Some(own.or(&rule)),
            (own, rule) => own.or(rule),
        };
        let patient = extensions.get::<Impatient>().is_none();
        Facts { destination, options: options.map(Box::new), patient }
    }
}

impl Http {
    /// Returns the health of a response whose status is a success by the table alone.
    #[inline]
    pub(super) fn served_by_status(
        &self,
        status: StatusCode,
        headers: &HeaderMap,
        options: Option<&CallOptions>,
    ) -> Option<Judged> {
        let is_plain = self.is_plain_success(status, options);
        is_plain.then(|| Judged { quota: self.quota(headers), ..Judged::SERVED })
    }
}

impl<B> Guardable<Request<B>> for Http {
    fn testimony(&self, request: &Request<B>) -> Option<Testimony> {
        Testimony::of(request.extensions())
    }

    #[inline]
    fn deadline(&self, request: &Request<B>) -> Option<Deadline> {
        let extensions = request.extensions();
        if extensions.is_empty() && self.has_no_rule() {
            return None;
        }
        let own = extensions.get().and_then(CallOptions::get_deadline);
        let of_options = own.or_else(|| self.options_by_rule(request)?.get_deadline());
        extensions.get().copied().into_iter().chain(of_options).min()
    }

    #[inline]
    fn facts<'a>(&self, request: &'a Request<B>) -> Facts<'a> {
        self.facts_of(request)
    }
}

impl<Request, C: Send + Sync + 'static> Guardable<Request> for CloneRequest<C> {
    fn deadline(&self, _: &Request) -> Option<Deadline> {
        None
    }

    fn facts<'a>(&self, _: &'a Request) -> Facts<'a> {
        Facts { destination: "".into(), options: None, patient: true }
    }
}

/// The reason for which the layer ends a call itself.
#[derive(Debug, Clone, Copy)]
pub enum OwnEnd {
    /// A guard refused the attempt.
    Refused(Refused),
    /// The deadline has passed before the attempt was sent. The call had waited this long.
    Late(Duration),
    /// The attempt took longer than it may.
    TimedOut(Duration),
}

/// A protocol whose guards can follow responses of type `Response` to their ends. Sealed.
#[diagnostic::on_unimplemented(
    message = "this `GuardLayer` cannot guard a service whose response is `{Response}` and whose error is `{E}`",
    note = "the response must be an `http::Response<B>` where `B: http_body::Body`, or reqwest's with the feature `reqwest`; the error must be `Into<BoxError>`",
    note = "where the protocol answers and the service's error is a `BoxError`, call `.boxed_errors()` on the layer"
)]
pub trait GuardOutcome<Response, E, M>: ClassifyOutcome<Response>
where
    M: ErrorMode<E>,
{
    /// The response of a guarded call.
    type Guarded<G: Guard>;

    /// Returns the health of a response if its head shows, without a closer look, that the call was served.
    #[doc(hidden)]
    #[inline]
    fn served(&self, response: &Response, options: Option<&CallOptions>) -> Option<Judged> {
        let _ = (response, options);
        None
    }

    /// Returns the health of an outcome, with its classification.
    #[doc(hidden)]
    fn health(
        &self,
        outcome: Result<&Response, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
    ) -> (Classification, Judged);

    /// Returns the outcome of a call that the layer ends itself.
    #[doc(hidden)]
    fn own_end<G: Guard>(reason: OwnEnd) -> Result<Self::Guarded<G>, M::Error>;

    /// Returns the response with the pass that is to end with its body.
    #[doc(hidden)]
    fn guarded<G: Guard>(
        response: Response,
        open: bool,
        pass: Option<Pass<G, Self>>,
    ) -> Self::Guarded<G>
    where
        Self: Sized;
}

/// Returns the boxed error of a call that the layer ends itself.
pub(crate) fn boxed(reason: OwnEnd) -> BoxError {
    match reason {
        OwnEnd::Refused(refused) => Box::new(refused),
        OwnEnd::Late(waited) => timed_out(TimeLimit::Deadline, waited),
        OwnEnd::TimedOut(after) => timed_out(TimeLimit::Attempt, after),
    }
}

fn timed_out(limit: TimeLimit, after: Duration) -> BoxError {
    Box::new(TimedOut { limit, after, refused: None, source: None })
}

impl<B, E> GuardOutcome<Response<B>, E, BoxedError> for Http
where
    B: Body,
    E: Into<BoxError>,
{
    type Guarded<G: Guard> = Response<GuardedBody<B, G>>;

    #[inline]
    fn served(&self, response: &Response<B>, options: Option<&CallOptions>) -> Option<Judged> {
        self.served_by_status(response.status(), response.headers(), options)
    }

    fn health(
        &self,
        outcome: Result<&Response<B>, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
    ) -> (Classification, Judged) {
        let classification = self.classify_outcome(outcome, options, None::<&SavedClone<()>>);
        let permanent = outcome.map(|response| || health::of_status(response.status()));
        let judged = of_classification(&classification, UNAVAILABLE_STATUSES, permanent);
        let quota = outcome.ok().and_then(|response| self.quota(response.headers()));
        (classification, Judged { quota, ..judged })
    }

    fn own_end<G: Guard>(reason: OwnEnd) -> Result<Self::Guarded<G>, BoxError> {
        Err(boxed(reason))
    }

    // A call would move the response once more.
    #[inline(always)]
    fn guarded<G: Guard>(
        response: Response<B>,
        _: bool,
        pass: Option<Pass<G, Self>>,
    ) -> Self::Guarded<G> {
        response.map(|body| GuardedBody::new(body, pass))
    }
}

impl<R, C, E, V> GuardOutcome<R, E, BoxedError> for CloneRequest<C>
where
    C: Fn(Result<&R, &(dyn Error + 'static)>) -> V + Send + Sync + 'static,
    V: Into<Classification>,
    E: Into<BoxError>,
{
    type Guarded<G: Guard> = R;

    fn health(
        &self,
        outcome: Result<&R, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
    ) -> (Classification, Judged) {
        let classification = self.classify_outcome(outcome, options, None::<&SavedClone<()>>);
        let judged = of_classification(
            &classification,
            UNAVAILABLE_STATUSES,
            outcome.map(|_| || Health::Served),
        );
        (classification, judged)
    }

    fn own_end<G: Guard>(reason: OwnEnd) -> Result<R, BoxError> {
        Err(boxed(reason))
    }

    /// A response of an arbitrary type has no known body, so the pass ends here.
    fn guarded<G: Guard>(response: R, _: bool, pass: Option<Pass<G, Self>>) -> R {
        if let Some(pass) = pass {
            pass.over(BodyEnd::Complete);
        }
        response
    }
}
