//! Fuzzes scripts of the fault kit.
#![no_main]

#[path = "../../crates/faults/tests/it/any_script.rs"]
mod any_script;

libfuzzer_sys::fuzz_target!(|text: &str| any_script::check(text));
