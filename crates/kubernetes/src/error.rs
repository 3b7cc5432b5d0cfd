//! The errors of a source.

use std::error::Error;
use std::fmt;

use kube::runtime::watcher;

/// An error of [`EndpointSlices`](crate::EndpointSlices): an invalid name, or a reason why the endpoints are not known.
///
/// The source of a failed watch is `kube::runtime::watcher::Error`.
#[derive(Debug)]
pub struct SlicesError {
    /// `namespace/service`, or the invalid name.
    service: Box<str>,
    problem: Problem,
}

#[derive(Debug)]
pub(crate) enum Problem {
    /// A field of the builder and its invalid value.
    Name(&'static str),
    NoSlice,
    NoPort,
    SlowList,
    Watch(Box<watcher::Error>),
}

impl SlicesError {
    pub(crate) fn new(service: impl Into<Box<str>>, problem: Problem) -> Self {
        Self { service: service.into(), problem }
    }

    /// Returns `true` if the service has no EndpointSlice: it does not exist, or has no selector and no slices by hand.
    /// A service that is scaled to 0 has an empty one.
    pub fn is_no_slice(&self) -> bool {
        matches!(self.problem, Problem::NoSlice)
    }

    /// Returns `true` if no slice with endpoints has the TCP port, or if there are several and none was chosen.
    pub fn is_no_port(&self) -> bool {
        matches!(self.problem, Problem::NoPort)
    }

    /// Returns `true` if the API server was not reached, refused the request, or sent something unreadable.
    pub fn is_watch(&self) -> bool {
        matches!(self.problem, Problem::Watch(_) | Problem::SlowList)
    }
}

impl fmt::Display for SlicesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let service = &self.service;
        match &self.problem {
            Problem::Name(field) => {
                write!(f, "{field} `{service}` is invalid (1 to 63 characters of a-z, 0-9 and -, no - at the ends)")
            }
            Problem::NoSlice => write!(f, "service `{service}` has no EndpointSlice"),
            Problem::NoPort => {
                write!(f, "no EndpointSlice of service `{service}` has the port (its name, or only one)")
            }
            Problem::SlowList => write!(f, "the list of the EndpointSlices of service `{service}` took more than 30 s"),
            Problem::Watch(_) => write!(f, "the EndpointSlices of service `{service}` are not watched"),
        }
    }
}

impl Error for SlicesError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match &self.problem {
            Problem::Watch(error) => Some(&**error),
            _ => None,
        }
    }
}
