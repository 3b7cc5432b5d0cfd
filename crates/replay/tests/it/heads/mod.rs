//! Request heads that are decoded from bytes. The fuzz targets `head` and `range` in `fuzz/` run the
//! same functions.

mod head;
mod input;
mod range;

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

    // field 28
    #[test]
    fn any_range_is_taken_only_where_it_fits(data in vec(any::<u8>(), 0..200)) {
        range::check(&data);
    }
}
