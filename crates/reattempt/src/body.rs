//! Replayable request bodies, and the bounds on their memory.
//!
//! Every attempt has a [`ReplayBody`](crate::ReplayBody) around the caller's body. The body is shared while it
//! streams, so a first attempt is not delayed.
//!
//! | item | content |
//! |---|---|
//! | [`ReplayLimits`] | which bodies are kept, and how much of one; for [`Http::replay`](crate::Http::replay) |
//! | [`ReplayMemory`] | one bound on the memory of all kept bodies, shared by clients |
//! | [`ReplayCharge`] | the memory reserved for one body |
//! | [`ReplayError`] | the error of a body that cannot be replayed |
//! | [`DrainBody`] | the drain of a refused response, which keeps its connection usable |
//! | [`Watched`], [`Watch`] | a response body that reports its frames and its end |

pub use crate::protocol::drain_body::DrainBody;
pub use crate::protocol::watched::{Watch, Watched};
pub use reattempt_replay::{ReplayCharge, ReplayError, ReplayLimits, ReplayMemory};
