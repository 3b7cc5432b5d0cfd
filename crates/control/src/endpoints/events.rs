//! The changes of a set for logs and metrics.

use std::sync::Arc;
use std::time::Duration;

use super::endpoint::EjectReason;

/// A change of a set, which the call that caused it returns.
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
}
