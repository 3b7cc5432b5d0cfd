//! The facts on which a script's choice of a fault depends.

use std::time::Duration;

/// An arrival for which a fault is chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arriving<'a> {
    /// `None` while the request is unknown.
    pub(crate) call: Option<&'a str>,
    pub(crate) connection: usize,
    pub(crate) at: Duration,
}
