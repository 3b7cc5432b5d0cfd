//! The length limit for destination names that are stored.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// The longest name that is stored unchanged, in bytes. No host name is longer (RFC 1035 §2.3.4).
const LONGEST: usize = 255;

/// Returns the name under which budgets and guards store a destination's state.
///
/// Limiting the number of destinations does not limit memory if names can have any length. Names longer than 255 bytes
/// are therefore replaced by `#` and a 128-bit hash. The hash keys are random and fixed for the life of the process, so
/// an attacker cannot choose two names that collide.
///
/// ```
/// # use reattempt_control::bounded_name;
///
/// assert_eq!(bounded_name("one.example"), "one.example");
/// let long = "a".repeat(100_000);
/// assert_eq!(bounded_name(&long).len(), 33);
/// assert_eq!(bounded_name(&long), bounded_name(&long));
/// assert_ne!(bounded_name(&long), bounded_name(&long[1..]));
/// ```
#[inline]
pub fn bounded_name(destination: &str) -> Cow<'_, str> {
    if destination.len() <= LONGEST { destination.into() } else { hash_of(destination).into() }
}

#[cold]
fn hash_of(destination: &str) -> String {
    static KEYS: OnceLock<[RandomState; 2]> = OnceLock::new();
    let keys = KEYS.get_or_init(|| [RandomState::new(), RandomState::new()]);
    let [high, low] = keys.each_ref().map(|keys| keys.hash_one(destination));
    format!("#{high:016x}{low:016x}")
}
