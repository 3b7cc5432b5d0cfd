//! The types of fallbacks that other layers read. The layer is in the crate `reattempt-fallback`.

pub use crate::protocol::failed::{BackupFailed, Failed, FellBack};
pub use crate::protocol::fallback_body::FallbackBody;
