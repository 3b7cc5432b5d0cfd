//! reqwest errors that add information to the hyper errors inside them, for each version of reqwest.

use std::any::Any;
use std::error::Error;

use reattempt_core::Verdict;

use super::{Sign, TIMED_OUT, view_as};
use crate::verdict_of_status;

/// Defines the functions that read the errors of one version.
macro_rules! version {
    ($module:ident, $reqwest:ident, $feature:literal) => {
        #[cfg(feature = $feature)]
        mod $module {
            use super::*;

            pub(super) fn sign(error: &(dyn Error + 'static)) -> Option<Sign> {
                let error = error.downcast_ref::<::$reqwest::Error>()?;
                Some(if let Some(status) = error.status() {
                    Sign::Proof(verdict_of_status(status))
                } else if error.is_builder() || error.is_redirect() {
                    Sign::Proof(Verdict::Permanent)
                } else if error.is_timeout() {
                    // `is_timeout` searches the whole chain, so it is also `true` for a timeout in the caller's body.
                    Sign::Presumption(TIMED_OUT)
                } else {
                    Sign::None
                })
            }

            pub(super) fn is_builder(error: &(dyn Error + 'static)) -> bool {
                error.downcast_ref().is_some_and(::$reqwest::Error::is_builder)
            }

            pub(super) fn view(error: &dyn Any) -> Option<&(dyn Error + 'static)> {
                view_as::<::$reqwest::Error>(error)
            }
        }

        #[cfg(not(feature = $feature))]
        mod $module {
            use super::*;

            pub(super) fn sign(_: &(dyn Error + 'static)) -> Option<Sign> {
                None
            }

            pub(super) fn is_builder(_: &(dyn Error + 'static)) -> bool {
                false
            }

            pub(super) fn view(_: &dyn Any) -> Option<&(dyn Error + 'static)> {
                None
            }
        }
    };
}

version!(v0_13, reqwest, "reqwest");
version!(v0_12, reqwest012, "reqwest-0-12");

pub(super) fn sign(error: &(dyn Error + 'static)) -> Option<Sign> {
    v0_13::sign(error).or_else(|| v0_12::sign(error))
}

pub(super) fn is_builder(error: &(dyn Error + 'static)) -> bool {
    v0_13::is_builder(error) || v0_12::is_builder(error)
}

/// Returns an error of a response body, if it is reqwest's.
pub(super) fn view(error: &dyn Any) -> Option<&(dyn Error + 'static)> {
    v0_13::view(error).or_else(|| v0_12::view(error))
}
