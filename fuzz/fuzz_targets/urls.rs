//! Fuzzes base URLs of endpoints, and requests that are written to them.
#![no_main]

#[allow(dead_code, reason = "another target reads more")]
#[path = "../../crates/replay/tests/it/heads/input.rs"]
mod input;
#[path = "../../crates/endpoints/tests/it/any/url.rs"]
mod url;

libfuzzer_sys::fuzz_target!(|data: &[u8]| url::check(data));
