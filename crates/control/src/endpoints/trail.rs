//! The endpoints that a call has tried.

use std::sync::atomic::{AtomicU32, Ordering};

/// The id of an endpoint. Ids are unique across all sets in the process, so one trail works for several sets. An id is
/// reused only after four billion others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct EndpointId(u32);

impl EndpointId {
    /// Returns a new id. This counter is not part of the model.
    pub(crate) fn next() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// The id of a tier of a set with several. Ids are unique across all sets in the process, so that a call which stays in
/// a tier is sent nowhere if it comes to another set. An id is reused only after a million sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
// One word, because each call in flight has one. The lower bits are the tier's number, and the others the set's.
pub struct TierId(u32);

impl TierId {
    const NUMBER: u32 = 0xFFF;

    pub(crate) const fn new(set: u32, number: u32) -> Self {
        Self((set << Self::NUMBER.count_ones()) | if number < Self::NUMBER { number } else { Self::NUMBER })
    }

    /// Returns a new number for a set. This counter is not part of the model.
    pub(crate) fn next_set() -> u32 {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }

    /// Returns the tier's number in its set, from 0 to 4095.
    pub const fn number(self) -> u32 {
        self.0 & Self::NUMBER
    }
}

/// The last fifteen endpoints that a call has tried: those of twelve attempts, and of three moves.
///
/// A call may thus return to an endpoint that it tried sixteen attempts ago.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trail {
    ids: [EndpointId; Self::LENGTH],
    length: u32,
    tier: Option<TierId>,
}

impl Trail {
    /// The number of endpoints that a trail stores.
    pub const LENGTH: usize = 15;

    /// Creates an empty trail.
    pub const fn new() -> Self {
        Self { ids: [EndpointId(0); Self::LENGTH], length: 0, tier: None }
    }

    /// Keeps the call's further attempts in this tier, because only its endpoints know the request's idempotency key.
    pub fn stay_in(&mut self, tier: TierId) {
        self.tier = Some(tier);
    }

    /// Returns the tier in which the call's further attempts stay, if any.
    #[inline]
    pub fn tier(&self) -> Option<TierId> {
        self.tier
    }

    /// Adds an endpoint. A full trail drops its oldest one.
    pub fn push(&mut self, id: EndpointId) {
        self.ids.rotate_right(1);
        self.ids[0] = id;
        if self.ids().len() < Self::LENGTH {
            self.length += 1;
        }
    }

    /// Returns `true` if nothing was tried, so that any endpoint may be picked.
    #[inline]
    pub fn is_new(&self) -> bool {
        self.length == 0 && self.tier.is_none()
    }

    /// Returns the endpoints, latest first.
    #[inline]
    pub fn ids(&self) -> &[EndpointId] {
        self.ids.get(..self.length as usize).unwrap_or(&[])
    }

    /// Returns `true` if the call has tried this endpoint.
    #[inline]
    pub fn contains(&self, id: EndpointId) -> bool {
        // Most trails are empty.
        self.length > 0 && self.ids().contains(&id)
    }
}

impl Default for Trail {
    fn default() -> Self {
        Self::new()
    }
}
