//! Fuzzes replies of a Redis server, over a connection.
#![no_main]

#[allow(dead_code, reason = "the tests read more")]
#[path = "../../crates/redis/tests/it/liar.rs"]
mod liar;

use std::cell::OnceCell;

use tokio::runtime::{Builder, Runtime};

thread_local! {
    static RUNTIME: OnceCell<Runtime> = const { OnceCell::new() };
}

libfuzzer_sys::fuzz_target!(|reply: &[u8]| RUNTIME.with(|cell| {
    let runtime = cell.get_or_init(|| Builder::new_current_thread().enable_all().build().unwrap());
    runtime.block_on(liar::check(reply));
}));
