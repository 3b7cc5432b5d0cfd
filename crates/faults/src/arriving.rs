//! The facts by which a script chooses a fault.

use std::time::Duration;

/// An arrival for which a fault is chosen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Arriving<'a> {
    /// `None` as long as the request is unknown.
    pub(crate) call: Option<&'a str>,
    pub(crate) connection: usize,
    pub(crate) at: Duration,
}
