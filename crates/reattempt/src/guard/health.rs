//! The server's health, derived from the classification of an outcome.

use std::error::Error;

use http::StatusCode;
use reattempt_core::guard::{Health, Quota};
use reattempt_core::{Classification, Failure, FailureKind, ServerHint, Verdict};

/// The statuses of a server that does not accept calls, or does not finish them in time.
pub(super) const UNAVAILABLE_STATUSES: &[u16] = &[503, 504];

/// The health and the server hint that a guard records for an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Judged {
    pub(crate) health: Health,
    pub(crate) hint: ServerHint,
    pub(crate) quota: Option<Quota>,
}

impl Judged {
    /// An attempt that exceeded its time limit.
    pub(super) const TIMED_OUT: Self = Self::new(Health::Unavailable, ServerHint::None);

    /// An attempt that the server processed, without a hint.
    pub(super) const SERVED: Self = Self::new(Health::Served, ServerHint::None);

    pub(super) const fn new(health: Health, hint: ServerHint) -> Self {
        Self { health, hint, quota: None }
    }
}

/// Returns the health of an outcome. For a response with a permanent verdict, `permanent` decides, because the server
/// or the caller may be at fault. `unavailable` lists the codes of a server that does not accept calls, or does not
/// finish them in time.
#[inline]
pub(crate) fn of_classification(
    classification: &Classification,
    unavailable: &[u16],
    permanent: Result<impl FnOnce() -> Health, &(dyn Error + 'static)>,
) -> Judged {
    let health = match (&classification.verdict, permanent) {
        (_, Err(error)) if reattempt_http::is_callers_own(error) => Health::Ignored,
        (Verdict::Success, _) => Health::Served,
        (Verdict::Transient(failure) | Verdict::NotProcessed(failure), _) => of_failure(failure, unavailable),
        (_, Ok(permanent)) => permanent(),
        // A rejected certificate, or an error of an unknown type.
        (_, Err(_)) => Health::Failed,
    };
    Judged::new(health, classification.hint)
}

fn of_failure(failure: &Failure, unavailable: &[u16]) -> Health {
    match failure.kind() {
        FailureKind::Throttled => Health::Overloaded,
        FailureKind::Timeout => Health::Unavailable,
        // The request did not arrive in time (RFC 9110 §15.5.9), because its body was slow or the connection idle. This
        // is not a success either, because some proxies send a 408 on behalf of their servers.
        FailureKind::Server if failure.code() == Some(408) => Health::Ignored,
        FailureKind::Server if failure.code().is_some_and(|code| unavailable.contains(&code)) => Health::Unavailable,
        _ => Health::Failed,
    }
}

/// Returns the health of a response with a permanent verdict.
pub(super) fn of_status(status: StatusCode) -> Health {
    match status {
        StatusCode::TOO_MANY_REQUESTS => Health::Overloaded,
        StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => Health::Unavailable,
        // These depend on the request. If they counted, one caller could open a breaker for all callers.
        StatusCode::NOT_IMPLEMENTED | StatusCode::HTTP_VERSION_NOT_SUPPORTED => Health::Served,
        status if status.is_server_error() => Health::Failed,
        _ => Health::Served,
    }
}
