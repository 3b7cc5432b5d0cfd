//! Fuzzes the readers of response bodies.
#![no_main]

#[path = "../../crates/http/tests/it/bodies/readers.rs"]
mod readers;

libfuzzer_sys::fuzz_target!(|data: &[u8]| readers::check(data));
