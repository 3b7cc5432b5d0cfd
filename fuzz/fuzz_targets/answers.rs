//! Fuzzes the answers of look-ups of endpoints.
#![no_main]

#[path = "../../crates/endpoints/tests/it/any/answer.rs"]
mod answer;
#[allow(dead_code, reason = "another target reads more")]
#[path = "../../crates/replay/tests/it/heads/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| answer::check(data));
