//! Every representable request, saved and restored.
#![no_main]

#[path = "../../crates/http/tests/heads/head.rs"]
mod head;
#[path = "../../crates/http/tests/heads/input.rs"]
mod input;

libfuzzer_sys::fuzz_target!(|data: &[u8]| head::check(data));
