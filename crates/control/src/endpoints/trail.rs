//! The endpoints that a call has tried.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of an endpoint. All sets of the process count together, so that one trail serves them all. A number is
/// used again only after four billion others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndpointId(u32);

impl EndpointId {
    /// Returns a new number. No model needs to see this counter.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The last seven endpoints that a call has tried.
///
/// A call of more attempts may come back to an endpoint that it tried eight attempts before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trail {
    ids: [EndpointId; Self::LENGTH],
    length: usize,
}

impl Trail {
    /// The number of endpoints that a trail remembers.
    pub const LENGTH: usize = 7;

    /// Creates the trail of a call that has tried none.
    pub const fn new() -> Self {
        Self { ids: [EndpointId(0); Self::LENGTH], length: 0 }
    }

    /// Adds an endpoint. A full trail forgets the first one.
    pub fn push(&mut self, id: EndpointId) {
        self.ids.rotate_right(1);
        self.ids[0] = id;
        self.length = Self::LENGTH.min(self.length + 1);
    }

    /// Returns the endpoints, the last one first.
    #[inline]
    pub fn ids(&self) -> &[EndpointId] {
        self.ids.get(..self.length).unwrap_or(&[])
    }

    /// Returns `true` if the call has tried this endpoint.
    #[inline]
    pub fn contains(&self, id: EndpointId) -> bool {
        self.ids().contains(&id)
    }
}

impl Default for Trail {
    fn default() -> Self {
        Self::new()
    }
}
