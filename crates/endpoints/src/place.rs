//! The function that gives each endpoint its place.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use reattempt_control::Place;

/// A source whose endpoints have keys. This trait is sealed.
pub trait Keyed {
    /// The key of an endpoint, such as its address or its base URL.
    type Key;

    /// Returns the function that gives each endpoint its place.
    #[doc(hidden)]
    fn placing(&mut self) -> &mut Placing<Self::Key>;
}

/// The function set by [`placed`](super::Endpoints::placed), if any.
#[expect(unnameable_types, reason = "of a sealed trait")]
pub struct Placing<K>(pub(super) Option<Arc<PlaceOf<K>>>);

pub(super) type PlaceOf<K> = dyn Fn(&K, Place) -> Place + Send + Sync;

impl<K> Placing<K> {
    /// Returns the place of an endpoint, which its source has put there. Runs user code.
    pub(super) fn of(&self, key: &K, place: Place) -> Place {
        self.0.as_ref().map_or(place, |of| of(key, place))
    }
}

impl<K> Default for Placing<K> {
    fn default() -> Self {
        Self(None)
    }
}

impl<K> Clone for Placing<K> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<K> fmt::Debug for Placing<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Placing" } else { "None" })
    }
}

/// The places of the endpoints of a set, by name.
pub(super) struct Places(pub(super) HashMap<Arc<str>, Place>);

impl Places {
    /// Returns the place of an endpoint, or the default place of a new one.
    pub(super) fn of(&self, name: &str) -> Place {
        self.0.get(name).copied().unwrap_or_default()
    }
}
