//! The fields of an EndpointSlice that are read: API group `discovery.k8s.io`, version `v1`.
//!
//! The type is not k8s-openapi's, which exists once per version of the API, and would tie this crate to one release of
//! kube. Every field may be absent, because absence has a meaning in most of them.

use std::borrow::Cow;

use kube::Resource;
use kube::core::{NamespaceResourceScope, ObjectMeta};
use serde::Deserialize;

/// A part of the endpoints of a service.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct EndpointSlice {
    pub(crate) metadata: ObjectMeta,
    /// `IPv4` or `IPv6`. Slices of the deprecated type `FQDN` are not used.
    pub(crate) address_type: String,
    pub(crate) endpoints: Option<Vec<SliceEndpoint>>,
    pub(crate) ports: Option<Vec<SlicePort>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct SliceEndpoint {
    /// Only the first one has a meaning.
    pub(crate) addresses: Option<Vec<String>>,
    pub(crate) conditions: Option<Conditions>,
    pub(crate) node_name: Option<Box<str>>,
    pub(crate) zone: Option<Box<str>>,
    pub(crate) target_ref: Option<TargetRef>,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Conditions {
    ready: Option<bool>,
    serving: Option<bool>,
    terminating: Option<bool>,
}

/// The object behind an endpoint, usually a pod.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TargetRef {
    pub(crate) name: Option<Box<str>>,
    pub(crate) uid: Option<Box<str>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(crate) struct SlicePort {
    name: Option<String>,
    /// Default: TCP.
    protocol: Option<String>,
    port: Option<u16>,
}

/// The use of an endpoint, from the best to the worst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Standing {
    Ready,
    /// It is terminating, and still answers.
    Draining,
    /// It is not ready, or has stopped answering.
    Out {
        terminating: bool,
    },
}

impl Standing {
    pub(crate) fn is_terminating(self) -> bool {
        matches!(self, Self::Draining | Self::Out { terminating: true })
    }
}

impl From<Option<Conditions>> for Standing {
    /// Absent conditions mean ready and not terminating. An absent `serving` means the same as `ready`.
    fn from(conditions: Option<Conditions>) -> Self {
        let Conditions { ready, serving, terminating } = conditions.unwrap_or_default();
        let (is_ready, terminating) = (ready != Some(false), terminating == Some(true));
        match (terminating, is_ready) {
            (false, true) => Self::Ready,
            (true, ready) if serving.unwrap_or(ready) => Self::Draining,
            _ => Self::Out { terminating },
        }
    }
}

impl EndpointSlice {
    /// Returns the number of the TCP port with this name. Without a name, the slice must have only one.
    pub(crate) fn port(&self, name: Option<&str>) -> Option<u16> {
        let ports = self.ports.iter().flatten();
        let tcp = ports.filter(|port| port.protocol.as_deref().is_none_or(|protocol| protocol == "TCP"));
        let mut named = tcp.filter(|port| name.is_none_or(|name| port.name.as_deref().unwrap_or("") == name));
        let port = named.next()?.port;
        port.filter(|port| *port != 0 && named.next().is_none())
    }
}

impl Resource for EndpointSlice {
    type DynamicType = ();
    type Scope = NamespaceResourceScope;

    fn kind((): &()) -> Cow<'_, str> {
        "EndpointSlice".into()
    }

    fn group((): &()) -> Cow<'_, str> {
        "discovery.k8s.io".into()
    }

    fn version((): &()) -> Cow<'_, str> {
        "v1".into()
    }

    fn plural((): &()) -> Cow<'_, str> {
        "endpointslices".into()
    }

    fn meta(&self) -> &ObjectMeta {
        &self.metadata
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        &mut self.metadata
    }
}
