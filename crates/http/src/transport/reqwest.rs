//! reqwest errors that add information to the hyper errors inside them.

use reattempt_core::Verdict;

use super::{Sign, TIMED_OUT};
use crate::verdict_of_status;

pub(super) fn sign(error: &::reqwest::Error) -> Sign {
    if let Some(status) = error.status() {
        Sign::Proof(verdict_of_status(status))
    } else if error.is_builder() || error.is_redirect() {
        Sign::Proof(Verdict::Permanent)
    } else if error.is_timeout() {
        // `is_timeout` searches the whole chain, so it is also `true` for a timeout in the caller's body.
        Sign::Presumption(TIMED_OUT)
    } else {
        Sign::None
    }
}
