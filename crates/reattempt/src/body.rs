//! Bodies that can be sent again, and the bounds on the memory that this takes.
//!
//! Every attempt has a [`ReplayBody`](crate::ReplayBody) around the caller's body. The body is shared while it
//! streams, so a first attempt is not delayed.
//!
//! | item | content |
//! |---|---|
//! | [`ReplayLimits`] | which bodies are kept, and how much of one; for [`Http::replay`](crate::Http::replay) |
//! | [`ReplayMemory`] | one bound on the memory of all kept bodies, shared by clients |
//! | [`ReplayCharge`] | the memory that one body has reserved |
//! | [`ReplayError`] | the error of a body that could not be sent again |
//! | [`DrainBody`] | the drain of a refused response, which keeps its connection usable |
//! | [`Watched`], [`Watch`] | a body whose frames a guard or a measurement watches |

pub use crate::protocol::drain_body::DrainBody;
pub use crate::protocol::watched::{Watch, Watched};
pub use reattempt_replay::{ReplayCharge, ReplayError, ReplayLimits, ReplayMemory};
