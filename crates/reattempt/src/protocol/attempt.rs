//! The attempt that is made of a saved request, and the additions of a layer to a new request.

use crate::call::deadline::Deadline;
use crate::call::request_terms::NestedMarker;

/// The reason for an attempt after the first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttemptKind {
    /// The attempt before it has failed.
    Retry,
    /// The attempt before it was not processed at all. It has the same number.
    Replacement,
    /// The attempts before it have not ended, or have failed.
    Hedge,
}

/// The attempt that is made of a saved request.
#[derive(Debug, Clone, Copy)]
pub struct NextAttempt {
    /// Its number; a replacement has that of the attempt it replaces.
    pub number: u32,
    /// The reason for it.
    pub kind: AttemptKind,
    /// `true` if no further one is allowed, so that nothing has to be kept for it.
    pub last: bool,
    /// `true` if the head is kept all the same, for a classifier.
    pub keeps_head: bool,
    /// The call's deadline.
    pub deadline: Option<Deadline>,
    /// `true` if an attempt before it may have been processed.
    pub unproven: bool,
}

/// The additions of a layer to a request. Most calls have none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Added<'a> {
    /// An idempotency key.
    pub key: bool,
    /// `true` if the caller forbids that the request is processed twice, whatever its method and its key. Nothing is
    /// added for this.
    pub once: bool,
    /// A deadline that the request does not contain yet.
    pub deadline: Option<Deadline>,
    /// This layer's marker.
    pub marker: Option<&'a NestedMarker>,
    /// `true` if the request has fields that its protocol sets itself, which are removed.
    pub strip: bool,
}
