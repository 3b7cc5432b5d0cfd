//! The builder of a source.

use std::fmt;

use kube::{Api, Client};
use reattempt_endpoints::{Discovered, Endpoints};

use crate::changes::{Service, SliceChanges};
use crate::error::{Problem, SlicesError};
use crate::pod::Pod;
use crate::slices::Wanted;

/// The EndpointSlices of a service, as a source of [`Endpoints`].
///
/// ```
/// use reattempt::endpoints::Balanced;
/// use reattempt_kubernetes::{EndpointSlices, Pod, SlicesError};
///
/// # fn example<C: Clone + Send + Sync + 'static>(
/// #     client: kube::Client, channel_to: impl Fn(std::net::SocketAddr) -> C + Send + 'static,
/// # ) -> Result<Balanced<C>, SlicesError> {
/// let endpoints = EndpointSlices::new(client, "shop", "orders")?
///     .port("grpc")
///     .zone(std::env::var("ZONE").unwrap_or_default())
///     .connect(move |pod: &Pod| channel_to(pod.address()))
///     .spill(0.1);
/// # Ok(endpoints.http())
/// # }
/// ```
pub struct EndpointSlices {
    service: Service,
    zone: Option<Box<str>>,
}

impl EndpointSlices {
    /// Selects the slices of a service, by the label `kubernetes.io/service-name`.
    ///
    /// The service may have a cluster IP or be headless. The client needs the verbs `list` and `watch` on
    /// `endpointslices` in this namespace.
    ///
    /// # Errors
    /// Returns an error if a name is not a DNS label: 1 to 63 characters of `a-z`, `0-9` and `-`, no `-` at the ends.
    pub fn new(client: Client, namespace: &str, service: &str) -> Result<Self, SlicesError> {
        for (field, name) in [("namespace", namespace), ("service", service)] {
            if !is_label(name) {
                return Err(SlicesError::new(name, Problem::Name(field)));
            }
        }
        let shown = format!("{namespace}/{service}").into();
        let api = Api::namespaced(client, namespace);
        Ok(Self { service: Service { api, name: service.into(), shown, wanted: Wanted::default() }, zone: None })
    }

    /// Selects the TCP port with this name, which is the name in the service's `ports`. Its number may differ by slice.
    /// Default: the only port. A service with several needs this setting.
    pub fn port(mut self, name: impl Into<Box<str>>) -> Self {
        self.service.wanted.port = Some(name.into());
        self
    }

    /// Sets the zone of this client. Pods of the zone become the first [tier](reattempt_endpoints#tiers). All others
    /// become the second, which gets calls if the first is not enough. An empty text is no zone. Default: no tiers.
    ///
    /// Both tiers share their state, because they are one service: a POST with an idempotency key is retried in either.
    /// [`spill`](Endpoints::spill) opens connections to other zones before they are needed.
    ///
    /// Hints (`forZones`, which `trafficDistribution` sets) are not read: they make up for a kube-proxy that knows
    /// neither the load nor the latency of a pod. Under `PreferSameZone` they name the pod's own zone.
    pub fn zone(mut self, zone: impl Into<Box<str>>) -> Self {
        self.zone = Some(zone.into()).filter(|zone| !zone.is_empty());
        self
    }

    /// Prefers IPv6 addresses if the service has both families. Default: IPv4.
    ///
    /// A set has one family, because each pod would otherwise be two servers. Slices do not tell the order of the
    /// service's `ipFamilies`, and the first one seen would differ by process. The other family is used if no pod is
    /// ready in the preferred one.
    pub fn prefer_ipv6(mut self) -> Self {
        self.service.wanted.ipv6_first = true;
        self
    }

    /// Sets the closure that creates a pod's client. It is called when a pod is first listed, and again if it returns.
    /// The watch starts in a runtime, when [`http`](Endpoints::http) or [`with`](Endpoints::with) has made a client.
    ///
    /// If `connect` panics, the set no longer changes.
    ///
    /// # Cancel safety
    /// The watch ends with the last client, handle and response body of the set.
    pub fn connect<F, C>(self, connect: F) -> Endpoints<Discovered<SliceChanges<F>>>
    where
        F: FnMut(&Pod) -> C + Send + 'static,
        C: Clone + Send + Sync + 'static,
    {
        let Self { service, zone } = self;
        let endpoints = Endpoints::discover(SliceChanges::new(service, connect)).allow_empty();
        match zone {
            Some(zone) => {
                let is_other = move |pod: &Pod| pod.zone() != Some(&*zone);
                endpoints.placed(move |pod, place| place.tier(usize::from(is_other(pod)))).tiers_share_state()
            }
            None => endpoints,
        }
    }

    /// Returns the changes themselves, as a stream and a tower `Discover`: for another balancer, or for a program that
    /// tells the errors apart. The zone has no effect on it; each [`Pod`] has its own.
    pub fn changes<F: FnMut(&Pod) -> C, C>(self, connect: F) -> SliceChanges<F> {
        SliceChanges::new(self.service, connect)
    }
}

/// Returns `true` for a DNS label (RFC 1123, section 2.1, in lower case).
fn is_label(name: &str) -> bool {
    let is_inside = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=63).contains(&name.len()) && name.bytes().all(is_inside) && !name.starts_with('-') && !name.ends_with('-')
}

impl fmt::Debug for EndpointSlices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointSlices")
            .field("service", &self.service.shown)
            .field("wanted", &self.service.wanted)
            .field("zone", &self.zone)
            .finish()
    }
}
