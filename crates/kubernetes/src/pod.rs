//! The key of an endpoint.

use std::fmt;
use std::net::SocketAddr;

/// An endpoint of a service, usually a pod. Its address with the port is its name in events, errors and reports.
///
/// A pod with the address of an earlier one has another UID, so it is a new endpoint, without the earlier one's latency
/// and failures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    pub(crate) address: SocketAddr,
    pub(crate) name: Option<Box<str>>,
    pub(crate) uid: Option<Box<str>>,
    pub(crate) zone: Option<Box<str>>,
    pub(crate) node: Option<Box<str>>,
}

impl Pod {
    /// Returns the address and the port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns the name of the pod, unless the slice has none.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// Returns the UID of the pod, unless the slice has none.
    pub fn uid(&self) -> Option<&str> {
        self.uid.as_deref()
    }

    /// Returns the zone of the pod's node, such as `eu-west-1a`, unless the slice has none.
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// Returns the name of the pod's node, unless the slice has none.
    pub fn node(&self) -> Option<&str> {
        self.node.as_deref()
    }
}

/// Writes the address with the port.
impl fmt::Display for Pod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}
