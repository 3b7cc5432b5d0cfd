//! Fuzzes texts of policy files.
#![no_main]

#[path = "../../crates/policy-file/tests/it/any_file.rs"]
mod any_file;

libfuzzer_sys::fuzz_target!(|text: &str| any_file::look(text));
