//! The tiers that idempotency keys were sent to, for requests that come without a frame.

use std::collections::VecDeque;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reattempt_control::TierId;

/// The number of keys that a set remembers. A call's attempts come within seconds of each other.
const MOST: usize = 1024;

/// The tiers of the last idempotency keys.
///
/// Tiers share no state, so a key is good only for the tier that may have processed its request. The retry layer keeps
/// to that, unless another task or another set of endpoints between the two hides from it where its attempts went.
#[derive(Default)]
pub(super) struct KeyTiers {
    hasher: RandomState,
    last: Mutex<VecDeque<(u64, TierId)>>,
}

impl KeyTiers {
    /// Locks the tiers for one pick, so that two requests with the same key cannot both be the first.
    pub(super) fn of<'a>(&'a self, key: &[u8]) -> TierOfKey<'a> {
        let key = self.hasher.hash_one(key);
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let tier = last.iter().rev().find(|(other, _)| *other == key).map(|(_, tier)| *tier);
        TierOfKey { last, key, tier }
    }
}

impl fmt::Debug for KeyTiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyTiers").finish_non_exhaustive()
    }
}

/// The tier of one key, which stays locked.
pub(super) struct TierOfKey<'a> {
    last: MutexGuard<'a, VecDeque<(u64, TierId)>>,
    key: u64,
    tier: Option<TierId>,
}

impl TierOfKey<'_> {
    /// Returns the tier that the key was sent to, if any.
    pub(super) fn tier(&self) -> Option<TierId> {
        self.tier
    }

    /// Remembers that the key is sent to this tier, in place of the oldest key.
    pub(super) fn sent_to(mut self, tier: TierId) {
        if self.tier.is_some() {
            return;
        }
        if self.last.len() == MOST {
            self.last.pop_front();
        }
        self.last.push_back((self.key, tier));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tiers of a set of two.
    fn tiers() -> [TierId; 2] {
        let set = reattempt_control::EndpointSet::<()>::new();
        let now = std::time::Duration::ZERO;
        set.update([(0, "a"), (1, "b")], |_| (), now);
        let mut trail = reattempt_control::Trail::new();
        let mut random = crate::random::OfThread;
        [0, 1].map(|_| {
            let pick = set.pick(&trail, now, &mut random).unwrap();
            trail.push(pick.ticket.id());
            pick.tier.unwrap().id
        })
    }

    #[test]
    fn last_keys_keep_their_first_tier() {
        let (keys, [one, other]) = (KeyTiers::default(), tiers());
        keys.of(b"0").sent_to(one);
        keys.of(b"0").sent_to(other);
        assert_eq!(keys.of(b"0").tier(), Some(one));
        (1..=MOST).for_each(|number| keys.of(number.to_string().as_bytes()).sent_to(other));
        assert_eq!(keys.of(b"0").tier(), None);
        assert_eq!(keys.of(b"1").tier(), Some(other));
        assert_eq!(keys.last.lock().unwrap().len(), MOST);
    }
}
