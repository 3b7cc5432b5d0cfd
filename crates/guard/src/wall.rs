//! For the layers of this workspace, not covered by semver: the part of a guarded client that other layers build on.

pub use crate::shared::Shared;
