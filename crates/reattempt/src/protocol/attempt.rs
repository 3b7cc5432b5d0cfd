//! The attempt that is to be made of a saved request, and the additions of a layer to a new one.

use crate::call::deadline::Deadline;
use crate::call::wishes::NestedMarker;

/// Why there is an attempt beside the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptKind {
    /// One before it has failed.
    Retry,
    /// The one before it was not processed at all, and it counts as the same.
    Replacement,
    /// Those before it have not answered, or not well.
    Hedge,
}

/// The attempt that is to be made of what was kept.
#[derive(Debug, Clone, Copy)]
pub struct NextAttempt {
    /// Its number; a replacement has that of the attempt it replaces.
    pub number: u32,
    /// Why it is made.
    pub kind: AttemptKind,
    /// `true` if no further one is allowed, so that nothing has to be kept for it.
    pub last: bool,
    /// `true` if the head is kept all the same, for a classifier.
    pub keeps_head: bool,
    /// The call's deadline.
    pub deadline: Option<Deadline>,
}

/// The additions of a layer to a request. On most calls it is nothing, and then the request is not touched.
#[derive(Debug, Clone, Copy, Default)]
pub struct Added<'a> {
    /// An idempotency key.
    pub key: bool,
    /// A deadline that the request does not carry yet.
    pub deadline: Option<Deadline>,
    /// This layer's marker.
    pub marker: Option<&'a NestedMarker>,
    /// `true` if it has fields that its protocol sets itself, which are to go.
    pub strip: bool,
}
