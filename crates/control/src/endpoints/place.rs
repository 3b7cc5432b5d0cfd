//! The place of an endpoint in its set.

/// The place of an endpoint in its set. Default: the first tier.
///
/// ```
/// use reattempt_control::Place;
///
/// let in_another_zone = Place::new().tier(1);
/// assert_ne!(in_another_zone, Place::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub(crate) tier: usize,
}

impl Place {
    /// Creates the default place.
    pub const fn new() -> Self {
        Self { tier: 0 }
    }

    /// Sets the number of the tier. Default: 0. Lower tiers are preferred.
    #[must_use]
    pub const fn tier(self, tier: usize) -> Self {
        Self { tier }
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

/// A place in the tier of this number.
impl From<usize> for Place {
    fn from(tier: usize) -> Self {
        Self::new().tier(tier)
    }
}
