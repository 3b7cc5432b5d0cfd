//! Request heads that are decoded from bytes. The fuzz target `head` in `fuzz/` runs the same function.

mod head;
mod input;

use proptest::collection::vec;
use proptest::prelude::*;

// trap 34
#[test]
fn head_of_too_many_headers_is_restored() {
    head::check(&[0, 0, 0, 0, 0, 0, 1, 31, 255, 170]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    // trap 34
    #[test]
    fn head_any_request_is_restored(data in vec(any::<u8>(), 0..400)) {
        head::check(&data);
    }
}
