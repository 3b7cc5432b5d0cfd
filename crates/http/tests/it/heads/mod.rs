//! Heads that are decoded from bytes. The fuzz target `hints` in `fuzz/` runs the same function.

#[allow(dead_code, reason = "only the generator of requests is used here")]
#[path = "../../../../replay/tests/it/heads/head.rs"]
mod head;
mod hints;
#[path = "../../../../replay/tests/it/heads/input.rs"]
mod input;

use proptest::collection::vec;
use proptest::prelude::*;
use reattempt_http::{is_head_repeatable, is_repeatable};
use reattempt_replay::SavedHead;

use crate::heads::input::Input;

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn saved_head_is_as_repeatable(data in vec(any::<u8>(), 0..400)) {
        let request = head::request(&mut Input::new(&data));
        let expected = is_repeatable(request.method(), request.headers());
        assert_eq!(is_head_repeatable(&SavedHead::new(&request)), expected);
    }

    #[test]
    fn hints_any_response_head_is_sane(data in vec(any::<u8>(), 0..200)) {
        hints::check(&data);
    }
}
