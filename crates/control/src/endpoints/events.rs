//! The changes of a set for logs and metrics.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::Rounded;

use super::endpoint::EjectReason;

/// A change of a set, which the call that caused it returns, or an event of its discovery.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EndpointEvent {
    /// An endpoint is out of service for a while.
    Ejected {
        /// The name of the endpoint.
        name: Arc<str>,
        /// The reason.
        reason: EjectReason,
        /// The time until it returns.
        lasts: Duration,
    },
    /// An endpoint is in service again.
    Returned {
        /// The name of the endpoint.
        name: Arc<str>,
    },
    /// More than half of the endpoints of the set, or of its last tier, are ejected. All of them are in service.
    MajorityFailing {
        /// The number of the tier, from 0.
        tier: usize,
    },
    /// Half of the endpoints or fewer are ejected again. They are out of service.
    MajorityWell {
        /// The number of the tier, from 0.
        tier: usize,
    },
    /// Discovery has found other endpoints than before.
    Resolved {
        /// The number of endpoints.
        endpoints: usize,
    },
    /// Discovery has failed, or found nothing. The endpoints stay.
    ResolveFailed {
        /// The error and its causes, without credentials.
        error: Arc<str>,
        /// The time until the next look-up; `None` if there is none.
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
