//! The common parts of every call, whatever its protocol and layer: options, deadline, outcome, report, timeout errors,
//! and the clock. A retried call also has a context and a record of its progress.

#[cfg(feature = "http")]
pub(crate) mod attempt_terms;
#[cfg(feature = "http")]
pub(crate) mod body_verdict;
#[cfg(feature = "http")]
mod bound_hint;
pub(crate) mod causes;
pub mod clock;
pub(crate) mod context;
#[cfg(feature = "http")]
pub(crate) mod cut_off;
pub(crate) mod deadline;
pub(crate) mod errors;
#[cfg(feature = "http")]
pub(crate) mod finish;
#[cfg(feature = "http")]
pub mod frame;
pub(crate) mod hook;
#[cfg(feature = "http")]
pub mod in_use;
#[cfg(feature = "http")]
pub mod late_answers;
#[cfg(feature = "http")]
pub(crate) mod layer_terms;
pub(crate) mod log;
pub(crate) mod method;
pub(crate) mod observe;
pub(crate) mod options;
#[cfg(feature = "http")]
pub(crate) mod outcome;
pub(crate) mod progress;
pub(crate) mod protocol;
pub(crate) mod random;
pub(crate) mod redact;
pub(crate) mod report;
pub(crate) mod request_terms;
#[cfg(feature = "http")]
pub(crate) mod request_view;
pub(crate) mod schedule;
pub(crate) mod settings;
#[cfg(feature = "http")]
pub(crate) mod timed_out;
