//! Fuzzes courses of frames through the replayable body, with any chunking and any source.
#![no_main]

#[allow(dead_code, reason = "the tests use more of it")]
#[path = "../../crates/replay/tests/it/support/mod.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|data: &[u8]| support::course::check(data));
