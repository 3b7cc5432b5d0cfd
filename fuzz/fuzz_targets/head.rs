//! Fuzzes the head of every representable request, which is saved and restored.
#![no_main]

#[path = "../../crates/replay/tests/it/heads/head.rs"]
mod head;
#[path = "../../crates/replay/tests/it/heads/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| head::check(data));
