//! Replayable request bodies, and the limits on their memory.
//!
//! Every attempt has a [`ReplayBody`](crate::ReplayBody) around the caller's body. The body is shared while it
//! streams, so a first attempt is not delayed.
//!
//! | item | content |
//! |---|---|
//! | [`ReplayLimits`] | which bodies are kept, and how many bytes of each; for [`Http::replay`](crate::Http::replay) |
//! | [`ReplayMemory`] | one limit on the memory for all kept bodies, which clients can share |
//! | [`ReplayCharge`] | the memory reserved for one body |
//! | [`ReplayError`] | the error of a body that cannot be replayed |
//! | [`DrainBody`] | reads a refused response to its end, so that its connection can be reused |
//! | [`Watched`], [`Watch`] | a response body that reports its frames and its end |

pub use crate::protocol::drain_body::DrainBody;
pub use crate::protocol::watched::{Watch, Watched};
pub use reattempt_replay::{ReplayCharge, ReplayError, ReplayLimits, ReplayMemory};
