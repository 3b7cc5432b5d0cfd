//! Replayable request bodies, and the limits on their memory.
//!
//! Every attempt has a [`ReplayBody`](crate::ReplayBody) around the caller's body. The body is saved while it is sent,
//! so the first attempt is not delayed.
//!
//! | item | content |
//! |---|---|
//! | [`ReplayLimits`] | the settings for [`Http::replay`](crate::Http::replay): which bodies are saved, and how many bytes of each |
//! | [`ReplayMemory`] | a memory limit, which clients can share, for all saved bodies |
//! | [`ReplayCharge`] | the memory reserved for one body |
//! | [`ReplayError`] | the error of a body that cannot be replayed |
//! | [`UploadBody`] | a body of any size that each attempt opens anew, such as a file; the guide has a page on uploads |
//! | [`UploadError`], [`FileState`] | the error of such a body, and the state of a file in it |
//! | [`DrainBody`] | a body that can be read to its end after a retry is granted, so that the connection can be reused |
//! | [`Watched`], [`Watch`] | a response body that reports its frames and its end, and the trait of its watchers |

pub use crate::protocol::message::DrainBody;
pub use crate::protocol::watched::{Watch, Watched};
pub use reattempt_replay::{FileState, ReplayCharge, ReplayError, ReplayLimits, ReplayMemory, UploadBody, UploadError};
