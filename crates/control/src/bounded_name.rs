//! The bound of the names under which state is kept.

use std::borrow::Cow;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::sync::OnceLock;

/// The longest name that is kept as it is, in bytes. No host name is longer (RFC 1035 §2.3.4).
const LONGEST: usize = 255;

/// Returns the name under which budgets and guards keep the state of a destination.
///
/// A bound on the number of destinations bounds no memory if others choose names of any length. So a name of more than
/// 255 bytes is replaced by `#` and a hash of 128 bits. The hash is the same throughout the process, and its keys are
/// random, so no one can choose two names with the same hash.
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
