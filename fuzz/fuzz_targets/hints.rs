//! Fuzzes response heads, with their hints and verdicts.
#![no_main]

#[path = "../../crates/http/tests/it/heads/hints.rs"]
mod hints;
#[allow(dead_code, reason = "another target reads more")]
#[path = "../../crates/replay/tests/it/heads/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| hints::check(data));
