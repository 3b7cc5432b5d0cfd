//! Nothing: only the dependencies of this crate matter.
