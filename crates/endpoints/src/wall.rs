//! For the layers of this workspace, not covered by semver.

pub use crate::send::direct;
