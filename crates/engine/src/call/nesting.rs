//! The markers by which nested retry layers coordinate.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// The marker in a request's extensions which shows that an outer layer already retries the request.
#[derive(Debug, Clone, Default)]
pub struct NestedMarker(Arc<AtomicU8>);

/// A layer retries the request with this marker.
const SET: u8 = 1;
/// An inner layer gave up.
const GIVEN_UP: u8 = 2;

impl NestedMarker {
    /// Records that a layer retries the request, and returns the marker.
    pub(crate) fn set(self) -> Self {
        self.0.fetch_or(SET, Ordering::Release);
        self
    }

    fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire) & SET != 0
    }

    /// Records that the inner layer gave up.
    pub(crate) fn give_up(&self) {
        self.0.fetch_or(GIVEN_UP, Ordering::Release);
    }

    /// Returns `true` if an inner layer gave up since the last call.
    pub(crate) fn take_given_up(&self) -> bool {
        self.0.fetch_and(!GIVEN_UP, Ordering::AcqRel) & GIVEN_UP != 0
    }
}

/// The markers of a call whose request has no extensions. They reach the layers inside on another way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Nesting {
    /// The marker that this call sets if its layer coordinates with others.
    pub(crate) own: NestedMarker,
    /// The marker of the nearest outer layer that has set one.
    pub(crate) outer: Option<NestedMarker>,
}

impl Nesting {
    /// Returns the markers of a call inside this one.
    #[cfg(feature = "http")]
    pub(crate) fn inside(&self) -> Self {
        let outer = if self.own.is_set() { Some(self.own.clone()) } else { self.outer.clone() };
        Self { own: NestedMarker::default(), outer }
    }
}
