//! The names of headers that a program adds to the known ones.

use http::HeaderName;

/// The names of headers that a program has added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct AddedNames {
    /// Headers with a delay.
    pub(super) delays: Vec<HeaderName>,
    /// Headers with the remaining calls and the time until the reset.
    pub(super) quotas: Vec<[HeaderName; 2]>,
}
