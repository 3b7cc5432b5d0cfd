//! The endpoint to which an attempt was sent, once it is known.

use std::sync::{Arc, OnceLock};

use reattempt_control::Trail;

use super::{Pick, Picks, Slot};

/// The endpoint of an attempt, or a slot for it.
#[derive(Debug, Clone, Default)]
pub enum Tried {
    /// No endpoint was picked.
    #[default]
    Nowhere,
    /// This endpoint.
    At(Pick),
    /// The slot of an attempt that is sent later.
    Later(Arc<OnceLock<Tried>>),
}

impl Tried {
    #[inline]
    pub(super) fn of(picks: Picks, slot: Option<Slot>) -> Self {
        match picks {
            Picks::Picked(pick) => Self::At(pick),
            Picks::Deferred => slot.map_or(Self::Nowhere, Self::Later),
            Picks::None | Picks::First | Picks::Next => Self::Nowhere,
        }
    }

    /// Returns the endpoint, if it is known.
    pub fn pick(&self) -> Option<Pick> {
        match self {
            Self::Nowhere => None,
            Self::At(pick) => Some(*pick),
            Self::Later(later) => later.get()?.pick(),
        }
    }

    /// Returns `true` if the attempt was sent without a pick. A layer that calls its inner service from a poll may not
    /// have done so yet.
    #[inline]
    pub(crate) fn is_missing(&self) -> bool {
        match self {
            Self::Nowhere => true,
            Self::At(_) => false,
            Self::Later(later) => later.get().is_some_and(Self::is_missing),
        }
    }

    /// Returns this value if an inner layer picked an endpoint or will do so.
    pub fn known(self) -> Option<Self> {
        (!matches!(self, Self::Nowhere)).then_some(self)
    }

    /// Adds the endpoint to the call's trail. Returns `true` if there is another untried endpoint.
    pub fn follow(&self, trail: &mut Trail) -> bool {
        self.pick().is_some_and(|pick| {
            trail.push(pick.id);
            if let Some(tier) = pick.tier.filter(|_| pick.stays) {
                trail.stay_in(tier.id);
            }
            pick.elsewhere
        })
    }
}
