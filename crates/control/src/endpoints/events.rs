//! The events of a set, for logs and metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::Rounded;

use super::endpoint::EjectReason;

/// A change in a set, returned by the method that caused it, or an event of the set's discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// An endpoint was temporarily ejected.
    Ejected {
        /// The endpoint's name.
        name: Arc<str>,
        /// The reason.
        reason: EjectReason,
        /// The time until it returns.
        lasts: Duration,
    },
    /// An ejected endpoint is in service again.
    Returned {
        /// The endpoint's name.
        name: Arc<str>,
    },
    /// More than half of the set, or of its last tier, is ejected, so all endpoints of that tier stay in service.
    MajorityFailing {
        /// The tier number, from 0.
        tier: usize,
    },
    /// At most half of the tier's endpoints are ejected now, so these are out of service again.
    MajorityWell {
        /// The tier number, from 0.
        tier: usize,
    },
    /// Discovery found different endpoints than before.
    Resolved {
        /// The number of endpoints.
        endpoints: usize,
    },
    /// Discovery failed or found nothing. The set does not change.
    ResolveFailed {
        /// The error and its sources, without credentials.
        error: Arc<str>,
        /// The time until the next lookup, or `None` if there is none.
        retry: Option<Duration>,
    },
}

impl fmt::Display for EndpointEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ejected { name, reason, lasts } => {
                write!(f, "{name} is out for {}: {reason}", Rounded(*lasts))
            }
            Self::Returned { name } => write!(f, "{name} is in service again"),
            Self::MajorityFailing { tier } => {
                write!(f, "most endpoints of tier {tier} fail, so all of them are in service")
            }
            Self::MajorityWell { tier } => {
                write!(f, "most endpoints of tier {tier} do not fail any more")
            }
            Self::Resolved { endpoints } => write!(f, "endpoints found: {endpoints}"),
            Self::ResolveFailed { error, retry: Some(retry) } => {
                write!(f, "no endpoints found, next look-up in {}: {error}", Rounded(*retry))
            }
            Self::ResolveFailed { error, retry: None } => {
                write!(f, "no endpoints found: {error}")
            }
        }
    }
}
