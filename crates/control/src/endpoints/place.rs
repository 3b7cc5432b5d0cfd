//! The place of an endpoint in its set.

/// The place of an endpoint in its set: its tier and its weight. Default: the first tier, and the weight 1.
///
/// ```
/// use reattempt_control::Place;
///
/// let in_another_zone = Place::new().tier(1).weight(5);
/// assert_ne!(in_another_zone, Place::default());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Place {
    pub(crate) tier: usize,
    pub(crate) weight: u32,
}

impl Place {
    /// Creates the default place.
    pub const fn new() -> Self {
        Self { tier: 0, weight: 1 }
    }

    /// Sets the number of the tier. Default: 0. Lower tiers are preferred.
    #[must_use]
    pub const fn tier(self, tier: usize) -> Self {
        Self { tier, ..self }
    }

    /// Sets the weight. Default: 1. Of two endpoints of a tier, the one with twice the weight gets twice the calls.
    ///
    /// Only the ratios of the weights in a tier matter. Up to 64 times the smallest weight is kept, and larger weights
    /// count as that. The price of an endpoint wins over its weight: one that is slow or fails gets fewer calls.
    ///
    /// An endpoint of weight 0 is a reserve. It gets calls that have tried two other endpoints of its tier, and those
    /// of the tier's part that is out of service, if that is more than half.
    #[must_use]
    pub const fn weight(self, weight: u32) -> Self {
        Self { weight, ..self }
    }

    /// Returns the number of the tier.
    pub const fn get_tier(self) -> usize {
        self.tier
    }

    /// Returns the weight.
    pub const fn get_weight(self) -> u32 {
        self.weight
    }

    /// Returns the part of a set in which the endpoint is: its tier, and the reserve behind it.
    pub(crate) const fn part(self) -> (usize, bool) {
        (self.tier, self.weight == 0)
    }
}

impl Default for Place {
    fn default() -> Self {
        Self::new()
    }
}

/// A place in the tier of this number, with the weight 1.
impl From<usize> for Place {
    fn from(tier: usize) -> Self {
        Self::new().tier(tier)
    }
}
