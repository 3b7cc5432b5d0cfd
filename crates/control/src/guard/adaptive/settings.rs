//! The constructors and setters of an adaptive limit.

use std::time::Duration;

use reattempt_core::guard::GuardKind;
use reattempt_core::snapshot::Part;

use super::{AdaptiveLimit, Aimd, Gradient2, LimitRule, Vegas};
use crate::guard::per_destination::PerDestination;
use crate::guard::places::PlacesSettings;
use crate::guard::wait_queue::Patience;

#[derive(Debug, Clone)]
pub(super) struct AdaptiveSettings<R> {
    pub(super) rule: R,
    /// The settings of the places. Their limit is the initial one.
    pub(super) places: PlacesSettings,
    pub(super) bounds: Bounds,
}

/// The lowest and the highest limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bounds {
    least: u32,
    most: u32,
}

impl Bounds {
    pub(super) fn inspect(self, part: Part) -> Part {
        part.field("least", self.least).field("most", self.most)
    }

    pub(super) fn clamp(self, limit: f64) -> f64 {
        limit.clamp(f64::from(self.least), f64::from(self.most))
    }
}

impl AdaptiveLimit<Aimd> {
    /// Creates a limit that reacts only to dropped calls, with [`Aimd`].
    pub fn aimd() -> Self {
        Self::new(Aimd::new())
    }
}

impl AdaptiveLimit<Vegas> {
    /// Creates a limit that keeps the server's queue short, with [`Vegas`].
    pub fn vegas() -> Self {
        Self::new(Vegas::new())
    }
}

impl AdaptiveLimit<Gradient2> {
    /// Creates a limit that follows the latency trend, with [`Gradient2`].
    pub fn gradient2() -> Self {
        Self::new(Gradient2::new())
    }
}

/// Each setter returns a new limit with its own state.
impl<R: LimitRule> AdaptiveLimit<R> {
    /// Creates a limit that is adjusted by `rule`.
    pub fn new(rule: R) -> Self {
        let (kind, patience) = (GuardKind::ADAPTIVE_LIMIT, Patience::NONE);
        Self(PerDestination::new(AdaptiveSettings {
            rule,
            places: PlacesSettings { limit: 20, patience, hold: true, kind },
            bounds: Bounds { least: 1, most: 200 },
        }))
    }

    /// Sets the lowest and the highest limit, to which the initial limit is clamped. Default: 1 and 200, because a
    /// client rarely needs more.
    ///
    /// A `least` of 0 is raised to 1, because at a limit of 0 there would be no samples that could raise it. A `most`
    /// below `least` is raised to `least`.
    pub fn bounds(self, least: u32, most: u32) -> Self {
        let least = least.max(1);
        let most = most.max(least);
        Self(self.0.changed(|settings| {
            settings.bounds = Bounds { least, most };
            settings.places.limit = settings.places.limit.clamp(least, most);
        }))
    }

    /// Sets the initial limit, clamped to the bounds. Default: 20.
    pub fn initial(self, limit: u32) -> Self {
        Self(self.0.changed(|settings| {
            settings.places.limit = limit.clamp(settings.bounds.least, settings.bounds.most);
        }))
    }

    /// Sets how many calls may wait per destination, and for how long. By default, no calls wait.
    pub fn queue(self, calls: usize, time: Duration) -> Self {
        Self(self.0.changed(|settings| settings.places.patience = Patience { calls, time }))
    }

    /// If `on`, frees the place when the response head arrives. By default, it is held until the end of the body.
    ///
    /// The head of a gRPC response does not end its call, so its place is always held until the trailers.
    pub fn release_at_head(self, on: bool) -> Self {
        Self(self.0.changed(|settings| settings.places.hold = !on))
    }
}
