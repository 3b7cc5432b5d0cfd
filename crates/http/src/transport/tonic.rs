//! tonic errors that add information to the hyper errors inside them.

use std::error::Error;

use super::{Phase, Sign, TIMED_OUT};

pub(super) fn sign(error: &(dyn Error + 'static)) -> Option<Sign> {
    if error.is::<::tonic::ConnectError>() {
        Some(Sign::At(Phase::Connecting))
    } else if error.is::<::tonic::TimeoutExpired>() {
        Some(Sign::Proof(TIMED_OUT))
    } else {
        None
    }
}
