//! The facts about an arrival that determine its fault.

use std::time::Duration;

/// An arrival for which a fault is chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arriving<'a> {
    /// `None` until the request is known.
    pub(crate) call: Option<&'a str>,
    pub(crate) connection: usize,
    pub(crate) at: Duration,
}
