//! The error for an invalid list of endpoints.

use std::error::Error;
use std::fmt;

use reattempt_engine::wall::{redacted, redacted_input};

/// The error for an invalid endpoint, or an invalid list of endpoints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EndpointsError {
    value: Box<str>,
    problem: &'static str,
    is_foreign: bool,
}

impl EndpointsError {
    pub(super) fn new(value: &str, problem: &'static str) -> Self {
        Self { value: redacted_input(value).into(), problem, is_foreign: false }
    }

    /// Creates the error for a name that is in a list twice.
    pub(super) fn twice(name: &str) -> Self {
        Self { value: redacted(name).into(), problem: "is listed twice (each endpoint once)", is_foreign: false }
    }

    /// Creates the error for a request to another host.
    pub(super) fn foreign(authority: &str) -> Self {
        let problem = "is neither the base URL of the requests nor a server of the set (`foreign_hosts`)";
        Self { is_foreign: true, ..Self::new(authority, problem) }
    }

    /// Returns `true` if a request was refused because it is for [another host](super::ForeignHosts::Refuse). A gateway
    /// responds with 421 (RFC 9110, section 15.5.20).
    pub fn is_foreign(&self) -> bool {
        self.is_foreign
    }

    /// Creates the error for an empty list.
    pub(super) fn empty() -> Self {
        Self::new("[]", "has no endpoint (at least 1)")
    }
}

impl fmt::Display for EndpointsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "endpoint `{}` {}", self.value, self.problem)
    }
}

impl Error for EndpointsError {}
