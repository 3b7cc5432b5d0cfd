//! The server's health, derived from the classification of an outcome.

use std::error::Error;

use http::{Extensions, StatusCode};
use reattempt_core::guard::{Health, Quota};
use reattempt_core::{Classification, Evidence, ServerHint, Signs};
use reattempt_engine::wall::{BodyVerdict, fault_of_error};

/// The statuses of a server that does not accept calls, or does not finish them in time.
pub(super) const UNAVAILABLE_STATUSES: &[u16] = &[503, 504];

/// The health and the server hint that a guard records for an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    /// The health that the outcome shows.
    pub health: Health,
    pub(crate) hint: ServerHint,
    pub(crate) quota: Option<Quota>,
}

impl Judged {
    /// An attempt that exceeded its time limit.
    pub(super) const TIMED_OUT: Self = Self::new(Health::Unavailable, ServerHint::None);

    /// An attempt that exceeded its time limit because the caller's body was slow.
    pub(crate) const IGNORED: Self = Self::new(Health::Ignored, ServerHint::None);

    /// An attempt that the server processed, without a hint.
    pub(super) const SERVED: Self = Self::new(Health::Served, ServerHint::None);

    pub(super) const fn new(health: Health, hint: ServerHint) -> Self {
        Self { health, hint, quota: None }
    }
}

/// Returns the health of an outcome, from its evidence. For a response with a permanent verdict, `permanent` decides,
/// because the server or the caller may be at fault. A permanent error is a rejected certificate or of an unknown type,
/// and counts as a failure. `unavailable` lists the codes of a server that does not accept calls, or does not finish
/// them in time.
#[inline]
pub(crate) fn of_classification(
    classification: &Classification,
    unavailable: &'static [u16],
    permanent: Result<impl FnOnce() -> Health, &(dyn Error + 'static)>,
) -> Judged {
    let error = permanent.as_ref().err().copied();
    let signs = Signs {
        undone: error.and_then(reattempt_http::undone),
        fault: error.and_then(fault_of_error),
        permanent: permanent.map_or(Health::Failed, |permanent| permanent()),
        unavailable,
        ..Signs::new(classification.verdict)
    };
    Judged::new(Evidence::of(&signs).health, classification.hint)
}

/// Returns the health of a response with a permanent verdict. If a rule judged its whole body, the server did its work,
/// whatever the status: an empty account is no sign of load.
pub(super) fn of_status(status: StatusCode, extensions: &Extensions) -> Health {
    match status {
        _ if BodyVerdict::of(extensions).is_some_and(|body| body.classification().is_some()) => Health::Served,
        StatusCode::TOO_MANY_REQUESTS => Health::Overloaded,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => Health::Unavailable,
        // These depend on the request. If they counted, one caller could open a breaker for all callers.
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => Health::Served,
        status if status.is_server_error() => Health::Failed,
        _ => Health::Served,
    }
}
