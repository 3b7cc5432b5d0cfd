//! The part of a protocol that guards need: the health of outcomes, and responses that hold a pass.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use http::{Extensions, HeaderMap, Response, StatusCode};
use http_body::Body;
use reattempt_core::Classification;
use reattempt_core::guard::{BodyEnd, Guard, Health, Refused};
use reattempt_engine::error::{BoxedError, ErrorMode, TimeLimit};
use reattempt_engine::protocol::{ClassifyOutcome, CloneRequest, SavedClone};
use reattempt_engine::{CallOptions, Http, TimedOut};
use tower::BoxError;

use super::body::{GuardedBody, guarded_body};
use super::health::{self, Judged, UNAVAILABLE_STATUSES, of_classification};
use super::pass::Pass;

/// Returns the health of a response that is a success based on its status alone.
#[inline]
pub(super) fn served_by_status(
    http: &Http,
    status: StatusCode,
    headers: &HeaderMap,
    extensions: &Extensions,
    options: Option<&CallOptions>,
) -> Option<Judged> {
    let is_plain = http.is_plain_success(status, extensions, options);
    is_plain.then(|| Judged { quota: http.quota(headers), ..Judged::SERVED })
}

/// The reason why the guard layer itself ended a call.
#[derive(Debug)]
pub enum OwnEnd {
    /// A guard refused the attempt.
    Refused(Refused),
    /// The deadline passed before the attempt was sent, after the call had waited for this time.
    Late(Duration),
    /// The attempt exceeded its time limit.
    TimedOut {
        /// The time limit.
        after: Duration,
        /// The name of the server, if the guard has chosen one.
        server: Option<Arc<str>>,
        /// `true` if the attempt waited for the caller's body.
        uploading: bool,
    },
    /// The request cannot be rewritten for the chosen server.
    Unwritable(BoxError),
}

/// A protocol whose guards can watch responses of type `Response` to their end. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "this `GuardLayer` cannot guard a service whose response is `{Response}` and whose error is `{E}`",
    note = "the response must be an `http::Response<B>` where `B: http_body::Body`, or that of reqwest 0.13 with the feature `reqwest` of reattempt; the error must be `Into<BoxError>`",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client",
    note = "where the protocol answers and the service's error is a `BoxError`, call `.boxed_errors()` on the layer"
)]
pub trait GuardOutcome<Response, E, Mode>: ClassifyOutcome<Response>
where
    Mode: ErrorMode<E>,
{
    /// The response of a guarded call.
    type Guarded<G: Guard>;

    /// Returns the health of a response if its head is enough to show that the call was served.
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

    /// Returns the outcome of a call that the layer itself ends.
    #[doc(hidden)]
    fn own_end<G: Guard>(reason: OwnEnd) -> Result<Self::Guarded<G>, Mode::Error>;

    /// Attaches the pass to the response body, which releases it at its end.
    #[doc(hidden)]
    fn guarded<G: Guard>(response: Response, open: bool, pass: Option<Pass<G, Self>>) -> Self::Guarded<G>
    where
        Self: Sized;
}

/// Returns the boxed error of a call that the layer itself ends.
pub(crate) fn boxed(reason: OwnEnd) -> BoxError {
    match reason {
        OwnEnd::Refused(refused) => Box::new(refused),
        OwnEnd::Unwritable(error) => error,
        OwnEnd::Late(waited) => Box::new(TimedOut::new(TimeLimit::Deadline, waited)),
        OwnEnd::TimedOut { after, server, uploading } => {
            Box::new(TimedOut::new(TimeLimit::Attempt, after).at(server, uploading))
        }
    }
}

impl<B, E> GuardOutcome<Response<B>, E, BoxedError> for Http
where
    B: Body,
    E: Into<BoxError>,
{
    type Guarded<G: Guard> = Response<GuardedBody<B, G>>;

    #[inline]
    fn served(&self, response: &Response<B>, options: Option<&CallOptions>) -> Option<Judged> {
        served_by_status(self, response.status(), response.headers(), response.extensions(), options)
    }

    fn health(
        &self,
        outcome: Result<&Response<B>, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
    ) -> (Classification, Judged) {
        let classification = self.classify_outcome(outcome, options, None::<&SavedClone<()>>);
        let permanent = outcome.map(|response| || health::of_status(response.status(), response.extensions()));
        let judged = of_classification(&classification, UNAVAILABLE_STATUSES, permanent);
        let quota = outcome.ok().and_then(|response| self.quota(response.headers()));
        (classification, Judged { quota, ..judged })
    }

    fn own_end<G: Guard>(reason: OwnEnd) -> Result<Self::Guarded<G>, BoxError> {
        Err(boxed(reason))
    }

    // A function call would move the response once more.
    #[inline(always)]
    fn guarded<G: Guard>(response: Response<B>, _: bool, pass: Option<Pass<G, Self>>) -> Self::Guarded<G> {
        response.map(|body| guarded_body(body, pass))
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
        let judged = of_classification(&classification, UNAVAILABLE_STATUSES, outcome.map(|_| || Health::Served));
        (classification, judged)
    }

    fn own_end<G: Guard>(reason: OwnEnd) -> Result<R, BoxError> {
        Err(boxed(reason))
    }

    /// Returns the response and ends the pass, because a response of an arbitrary type has no known body.
    fn guarded<G: Guard>(response: R, _: bool, pass: Option<Pass<G, Self>>) -> R {
        if let Some(pass) = pass {
            pass.over(BodyEnd::Complete);
        }
        response
    }
}
