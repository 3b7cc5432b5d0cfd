//! Fuzzes what servers say about ranges and versions of a download.
#![no_main]

#[allow(dead_code, reason = "another target reads more")]
#[path = "../../crates/replay/tests/it/heads/input.rs"]
mod input;
#[path = "../../crates/replay/tests/it/heads/range.rs"]
mod range;

libfuzzer_sys::fuzz_target!(|data: &[u8]| range::check(data));
