//! Fuzzes texts of gRPC service configs.
#![no_main]

#[path = "../../crates/grpc/tests/it/any_config.rs"]
mod any_config;

libfuzzer_sys::fuzz_target!(|text: &str| any_config::look(text));
