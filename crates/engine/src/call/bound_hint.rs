//! The hint of an attempt that binds only its endpoint, on its way to the outer guards.
//!
//! The guards of an endpoint and those around the set of endpoints end their tickets in the same poll, from the inside
//! out. So a thread-local value is enough, and a response without a hint costs nothing.

use std::cell::Cell;

use reattempt_core::ServerHint;

use super::frame::Frame;

thread_local! {
    static BOUND_HINT: Cell<ServerHint> = const { Cell::new(ServerHint::None) };
}

impl Frame {
    /// Records that this hint binds only the endpoint that gave it.
    pub fn bind_hint(hint: ServerHint) {
        BOUND_HINT.set(hint);
    }

    /// Takes the hint that binds only its endpoint, if there is one.
    pub fn take_bound_hint() -> ServerHint {
        BOUND_HINT.replace(ServerHint::None)
    }
}
