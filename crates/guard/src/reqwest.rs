//! Guard support for `reqwest::Client`.

use std::error::Error;

use reattempt_core::Classification;
use reattempt_core::guard::Guard;
use reattempt_engine::error::BoxedError;
use reattempt_engine::protocol::{ClassifyOutcome, SavedClone};
use reattempt_engine::wall::with_url;
use reattempt_engine::{CallOptions, Http};
use reqwest::{Body, Response};
use tower::BoxError;

use super::body::guarded_body;
use super::health::{self, Judged, UNAVAILABLE_STATUSES, of_classification};
use super::pass::Pass;
use super::protocol::{GuardOutcome, OwnEnd, boxed, served_by_status};

impl<E: Into<BoxError>> GuardOutcome<Response, E, BoxedError> for Http {
    type Guarded<G: Guard> = Response;

    #[inline]
    fn served(&self, response: &Response, options: Option<&CallOptions>) -> Option<Judged> {
        served_by_status(self, response.status(), response.headers(), response.extensions(), options)
    }

    fn health(
        &self,
        outcome: Result<&Response, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
    ) -> (Classification, Judged) {
        let classification = self.classify_outcome(outcome, options, None::<&SavedClone<()>>);
        let permanent = outcome.map(|response| || health::of_status(response.status(), response.extensions()));
        let judged = of_classification(&classification, UNAVAILABLE_STATUSES, permanent);
        let quota = outcome.ok().and_then(|response| self.quota(response.headers()));
        (classification, Judged { quota, ..judged })
    }

    fn own_end<G: Guard>(reason: OwnEnd) -> Result<Response, BoxError> {
        Err(boxed(reason))
    }

    /// Wraps the body if a guard holds a place for the response. This rebuilds the response with its URL. Any other
    /// response is returned unchanged.
    fn guarded<G: Guard>(response: Response, _: bool, pass: Option<Pass<G, Self>>) -> Self::Guarded<G> {
        let Some(pass) = pass else { return response };
        let (head, body) = with_url(response).into_parts();
        let body = Body::wrap(guarded_body(body, Some(pass)));
        http::Response::from_parts(head, body).into()
    }
}
