//! Fuzzes descriptor sets of gRPC services.
#![no_main]

#[path = "../../crates/grpc/tests/it/descriptors/any.rs"]
mod any;

libfuzzer_sys::fuzz_target!(|data: &[u8]| any::check(data));
