//! A destination's key in the store.

use std::fmt::Write;

use crate::rule::VERSION;

/// The maximum length of a key, in bytes.
const LONGEST: usize = 200;

/// Returns the key of `destination`: the prefix, the version of the rule, and the destination.
///
/// If a key would be longer than 200 bytes, its end is replaced with a hash. All processes must compute the same key,
/// so the hash is not keyed, and an attacker can choose two long names that share a bucket. Shorter names are never
/// affected.
pub(crate) fn key_of(prefix: &str, destination: &str) -> Box<str> {
    let mut key = format!("{prefix}:{VERSION}:{destination}");
    if key.len() > LONGEST {
        let hash = hash_of(key.as_bytes());
        let is_end = |end: &usize| key.is_char_boundary(*end);
        key.truncate((0..=LONGEST - 33).rev().find(is_end).unwrap_or(0));
        let _ = write!(key, "#{hash:032x}");
    }
    key.into()
}

/// Returns the 128-bit FNV-1a hash, which is the same in every process and version.
fn hash_of(bytes: &[u8]) -> u128 {
    const OFFSET: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(OFFSET, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_has_prefix_version_and_name() {
        assert_eq!(&*key_of("shop", "https://api.example:443"), "shop:2:https://api.example:443");
    }

    #[test]
    fn long_names_have_keys_of_their_own() {
        let long = |end: &str| key_of("reattempt", &format!("{}{end}", "ä".repeat(500)));
        assert!(long("a").len() <= LONGEST);
        assert_ne!(long("a"), long("b"));
        assert_eq!(long("a"), long("a"));
        // A key of 200 bytes has no hash; a longer one has 200 bytes including its hash.
        let name = "x".repeat(LONGEST - "p:2:".len());
        assert_eq!(&*key_of("p", &name), format!("p:2:{name}"));
        assert_eq!(key_of("p", &format!("{name}x")).len(), LONGEST);
        // The hash's published test vector.
        assert_eq!(hash_of(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
