//! The endpoints of a large set that one client uses.

use std::hash::BuildHasher;
use std::num::NonZeroUsize;
use std::sync::Arc;

use foldhash::quality::FixedState;
use reattempt_core::Warning;

use super::place::Place;

/// The number of endpoints above which a client should not keep connections to all of them.
const MANY: usize = 100;

type Placed = (Place, Arc<str>);

/// The rule by which a client chooses its endpoints.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Subset {
    All,
    /// Those with the smallest hashes (rendezvous hashing). An update replaces as few as possible.
    Seeded(NonZeroUsize, u64),
    /// A section of a ring that all clients share (S-2).
    Section(NonZeroUsize, u64),
}

impl Subset {
    /// Returns the endpoints of a part of a tier that the client uses.
    pub(crate) fn of(self, part: &[Placed]) -> Vec<Placed> {
        let mut part = part.to_vec();
        match self {
            Self::All => {}
            Self::Seeded(most, seed) => {
                let hasher = FixedState::with_seed(seed);
                part.sort_by_cached_key(|(_, name)| hasher.hash_one(name));
                part.truncate(most.get());
            }
            Self::Section(most, index) if most.get() < part.len() => {
                part.sort_by_cached_key(|(_, name)| (ring_hash(name), Arc::clone(name)));
                let begin = u128::from(index) * most.get() as u128 % part.len() as u128;
                part.rotate_left(usize::try_from(begin).unwrap_or(0));
                part.truncate(most.get());
            }
            Self::Section(..) => {}
        }
        part
    }

    /// Returns a warning about the number of endpoints that were listed.
    pub(crate) fn validate(self, listed: usize) -> Option<Warning> {
        match self {
            Self::All if listed > MANY => Some(Warning::new("endpoints", listed, "at most 100, or a subset")),
            Self::Seeded(most, _) if listed > most.get() => {
                let text = "clients × subset ≥ 5 × endpoints, else give an index: `subset_of`";
                Some(Warning::new("subset", format_args!("{most} of {listed} endpoints"), text))
            }
            _ => None,
        }
    }
}

/// Hashes a name for the ring. Clients of all versions and platforms must agree, so this is FNV-1a, whose bits the last
/// step of SplitMix64 mixes.
fn ring_hash(name: &str) -> u64 {
    let hash = name
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    hash ^ (hash >> 31)
}
