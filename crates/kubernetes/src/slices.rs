//! The slices of one service, and the endpoints that they list together.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use crate::error::Problem;
use crate::pod::Pod;
use crate::slice::{EndpointSlice, SliceEndpoint, Standing};

/// The endpoints to use, by their addresses.
pub(crate) type Pods = BTreeMap<SocketAddr, Pod>;

/// The settings by which endpoints are chosen.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) port: Option<Box<str>>,
    pub(crate) ipv6_first: bool,
}

/// The slices of a service by name.
#[derive(Debug, Default)]
pub(crate) struct Slices(BTreeMap<String, Listed>);

/// The parts of a slice that are kept.
#[derive(Debug)]
enum Listed {
    /// It has no endpoint, so it needs no port.
    Empty,
    /// It has endpoints, but not the port.
    NoPort,
    Pods(Vec<(Pod, Standing)>),
}

impl Slices {
    pub(crate) fn apply(&mut self, slice: EndpointSlice, wanted: &Wanted) {
        let is_ip = matches!(&*slice.address_type, "IPv4" | "IPv6");
        let Some(name) = slice.metadata.name.clone().filter(|_| is_ip) else { return };
        let listed = match slice.port(wanted.port.as_deref()) {
            _ if slice.endpoints.iter().flatten().next().is_none() => Listed::Empty,
            None => Listed::NoPort,
            Some(port) => {
                let endpoints = slice.endpoints.into_iter().flatten();
                Listed::Pods(endpoints.filter_map(|endpoint| pod(endpoint, port)).collect())
            }
        };
        self.0.insert(name, listed);
    }

    pub(crate) fn delete(&mut self, slice: &EndpointSlice) {
        if let Some(name) = &slice.metadata.name {
            self.0.remove(name);
        }
    }

    /// Returns the endpoints to use: those that are ready, else those that still answer although they are terminating,
    /// as kube-proxy does. All are of one address family.
    ///
    /// # Errors
    /// Without a slice, or without the port in any slice with endpoints, nobody has said that the service has no
    /// endpoints.
    pub(crate) fn pods(&self, wanted: &Wanted) -> Result<Pods, Problem> {
        let have = |test: fn(&Listed) -> bool| self.0.values().any(test);
        if self.0.is_empty() {
            return Err(Problem::NoSlice);
        }
        if have(|listed| matches!(listed, Listed::NoPort)) && !have(|listed| matches!(listed, Listed::Pods(_))) {
            return Err(Problem::NoPort);
        }
        let known = self.known();
        let of = |standing: Standing, ipv6: bool| -> Pods {
            let chosen = known.iter().filter(|(address, (_, is))| *is == standing && address.is_ipv6() == ipv6);
            chosen.map(|(address, (pod, _))| (*address, (*pod).clone())).collect()
        };
        let (first, second) = (wanted.ipv6_first, !wanted.ipv6_first);
        let order = [Standing::Ready, Standing::Draining].into_iter().flat_map(|it| [(it, first), (it, second)]);
        let mut choices = order.map(|(standing, ipv6)| of(standing, ipv6));
        Ok(choices.find(|pods| !pods.is_empty()).unwrap_or_default())
    }

    /// Returns each address once. An endpoint may be in two slices while it moves, and one of them is out of date. If
    /// it terminates in either, it terminates, because no pod returns from that. Otherwise, the better one counts.
    fn known(&self) -> BTreeMap<SocketAddr, (&Pod, Standing)> {
        let mut known = BTreeMap::<_, (&Pod, Standing)>::new();
        let listed = self.0.values().filter_map(|listed| match listed {
            Listed::Pods(pods) => Some(pods),
            _ => None,
        });
        for (pod, standing) in listed.flatten() {
            let best = known.entry(pod.address).or_insert((pod, *standing));
            let better = match (best.0.uid == pod.uid, standing.is_terminating(), best.1.is_terminating()) {
                (true, true, false) => true,
                (true, false, true) => false,
                _ => *standing < best.1,
            };
            if better {
                *best = (pod, *standing);
            }
        }
        known
    }
}

/// Returns an endpoint, unless it has no readable address.
fn pod(endpoint: SliceEndpoint, port: u16) -> Option<(Pod, Standing)> {
    let ip: IpAddr = endpoint.addresses?.first()?.parse().ok()?;
    let target = endpoint.target_ref.unwrap_or_default();
    let (zone, node) = (endpoint.zone, endpoint.node_name);
    let pod = Pod { address: SocketAddr::new(ip, port), name: target.name, uid: target.uid, zone, node };
    Some((pod, endpoint.conditions.into()))
}
