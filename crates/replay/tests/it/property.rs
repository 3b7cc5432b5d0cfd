//! Any body, and any order of reading, cloning, dropping and cancelling. Every reader sees exactly the body, or ends
//! with the error that names the reason. No reader starves, and everything that is kept is charged.
//!
//! The property is a function over plain bytes, `crate::support::course::check`, so that a fuzzer can call it as well.

use crate::support::course::check;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 6000,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    // trap 33
    #[test]
    fn body_of_any_course_is_replayed(bytes in prop::collection::vec(any::<u8>(), 0..160)) {
        check(&bytes);
    }
}
