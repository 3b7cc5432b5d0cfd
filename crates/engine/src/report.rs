//! The parts of a [`Report`](crate::Report), and the slot that receives one.
//!
//! A report lists an [`AttemptReport`] for each attempt, with its [`AttemptOutcome`] and the [`Cause`] that several
//! calls failed of. A [`ReportSlot`] receives the
//! report of any call, even if the call ends with an error or its response has no extensions.

pub use crate::call::causes::Cause;
#[cfg(feature = "http")]
pub use crate::call::report::Reported;
pub use crate::call::report::{AttemptOutcome, AttemptReport, ReportSlot};
