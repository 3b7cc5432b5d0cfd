//! The table of HTTP statuses and their verdicts.

use http::StatusCode;
use reattempt_core::{Failure, FailureKind, Verdict};

/// Returns the verdict for a response with this status.
///
/// | status | verdict |
/// |---|---|
/// | 1xx, 2xx, 3xx | success |
/// | 425, 429 | not processed: the server did no work, so any request may be sent again |
/// | 408, 500, 502, 503, 504, and any 5xx that no RFC defines | transient: a proxy may send it after the work was done, so only a [repeatable](crate::is_repeatable) request is sent again |
/// | every other 4xx; 501, 505, 506, 507, 508, 510, 511 | permanent: another attempt would fail the same way |
/// | 600 to 999, which HTTP does not define | permanent |
///
/// The failure's code is the status. Its kind is [`Throttled`](FailureKind::Throttled) for 429,
/// [`Other`](FailureKind::Other) for 425, and [`Server`](FailureKind::Server) for the rest. 425 is not a sign of load:
/// the server asks for the request outside TLS early data (RFC 8470 §5.2).
///
/// ```
/// use http::StatusCode;
/// # use reattempt_core::Verdict;
/// # use reattempt_http::verdict_of_status;
///
/// assert_eq!(verdict_of_status(StatusCode::NOT_FOUND), Verdict::Permanent);
/// assert!(matches!(verdict_of_status(StatusCode::BAD_GATEWAY), Verdict::Transient(_)));
/// assert!(matches!(verdict_of_status(StatusCode::TOO_MANY_REQUESTS), Verdict::NotProcessed(_)));
/// ```
#[must_use]
pub fn verdict_of_status(status: StatusCode) -> Verdict {
    let code = status.as_u16();
    let failure = |kind| Failure::new(kind).with_code(code);
    match code {
        100..=399 => Verdict::Success,
        425 => Verdict::NotProcessed(failure(FailureKind::Other)),
        429 => Verdict::NotProcessed(failure(FailureKind::Throttled)),
        // By definition, another attempt would fail the same way.
        501 | 505 | 506 | 507 | 508 | 510 | 511 => Verdict::Permanent,
        // RFC 9110 §15: an unknown code is treated like the x00 code of its class.
        408 | 500..=599 => Verdict::Transient(failure(FailureKind::Server)),
        _ => Verdict::Permanent,
    }
}
