//! tonic errors that add information to the hyper errors inside them.

use std::error::Error;

use super::{Sign, TIMED_OUT};

pub(super) fn sign(error: &(dyn Error + 'static)) -> Option<Sign> {
    if error.is::<::tonic::ConnectError>() || is_connect_timeout(error) {
        Some(Sign::Connecting)
    } else if error.is::<::tonic::TimeoutExpired>() {
        Some(Sign::Proof(TIMED_OUT))
    } else {
        None
    }
}

/// Returns `true` if the channel's own limit on connecting has passed. On a connection, a channel's error is hyper's.
fn is_connect_timeout(error: &(dyn Error + 'static)) -> bool {
    error.is::<::tonic::transport::Error>() && error.source().is_some_and(|below| below.is::<std::io::Error>())
}
