//! The hint of an attempt that binds only its endpoint, on its way to the outer guards.
//!
//! The guards of an endpoint and those around the set of endpoints end their tickets in the same poll, from the inside
//! out. So the thread's value is enough, and a response without a hint costs nothing.

use reattempt_core::ServerHint;

use super::{Frame, INNERMOST};

impl Frame {
    /// Records that this hint binds only the endpoint that gave it.
    pub fn bind_hint(hint: ServerHint) {
        INNERMOST.with(|innermost| innermost.bound_hint.set(hint));
    }

    /// Takes the hint that binds only its endpoint, if there is one.
    pub fn take_bound_hint() -> ServerHint {
        INNERMOST.with(|innermost| innermost.bound_hint.replace(ServerHint::None))
    }
}
