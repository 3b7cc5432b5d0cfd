//! Base URLs and answers of look-ups that are decoded from bytes. The fuzz targets `urls` and `answers` in `fuzz/` run
//! the same functions.

mod answer;
#[path = "../../../../replay/tests/it/heads/input.rs"]
mod input;
mod url;

use proptest::collection::vec;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_base_url_is_sane(data in vec(any::<u8>(), 0..100)) {
        url::check(&data);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    // E-10, E-16
    #[test]
    fn any_answer_of_look_ups_is_kept(data in vec(any::<u8>(), 0..60)) {
        answer::check(&data);
    }
}
