//! For the layers of this workspace, not covered by semver: the part of a guarded client that other layers build on.

pub use crate::future::{cut_off, poll_timeout};
pub use crate::judge::judge_error;
pub use crate::shared::Shared;
