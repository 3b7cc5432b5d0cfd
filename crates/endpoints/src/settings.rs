//! The settings of a set of endpoints, and their builder.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::{EjectionRules, EndpointEvent, EndpointSet, Place};
use reattempt_core::{Combined, Warning};

use super::base_url::BaseUrl;
use super::place::{Keyed, Placing};
use super::random;

/// An observer of a set's changes.
pub(super) type EventObserver = Arc<dyn Fn(&EndpointEvent) + Send + Sync>;

/// A builder for a set of equivalent servers and their client.
///
/// `S` is the source of the servers: a list, a look-up, or a `tower::discover::Discover`.
#[must_use = "`.http()` or a layer makes a client of it"]
pub struct Endpoints<S> {
    pub(super) source: S,
    pub(crate) settings: Settings,
}

#[derive(Clone, Default)]
pub(crate) struct Settings {
    keeps_failing: bool,
    ejection_rules: EjectionRules,
    /// The number of endpoints of each tier, and the client's index if it has one.
    subset: Option<(NonZeroUsize, Option<u64>)>,
    spill: Option<f64>,
    tiers_share_state: bool,
    pub(crate) attempt_timeout: Option<Duration>,
    pub(super) observers: Vec<EventObserver>,
    /// `true` if requests have an `https` base URL, so no `http` server may be listed.
    pub(super) https_only: bool,
    pub(super) foreign: ForeignHosts,
    /// The places of base URLs, which a handle may replace.
    pub(super) placing: Placing<BaseUrl>,
}

/// The treatment of requests whose URL begins with neither the requests' base URL nor that of a server in the set.
///
/// Such a request arises from a redirect, or in a gateway from a caller who names a host: over HTTP/1.1 in the absolute
/// form (RFC 9112, section 3.2.2), over HTTP/2 in every request (`:authority`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ForeignHosts {
    /// It is sent to the host that it names, with all of its headers. This is the default, because a client follows
    /// redirects to other hosts. A gateway that passes them is an open proxy.
    #[default]
    Pass,
    /// It fails with an [`EndpointsError`](super::EndpointsError) that [is foreign](super::EndpointsError::is_foreign).
    Refuse,
    /// It is sent to one of the servers, as if it had only a path. For gateways whose callers use HTTP/2. A CONNECT
    /// request has no path, and is refused.
    Base,
}

impl Settings {
    /// Creates an empty set with these settings.
    pub(super) fn set<T>(&self) -> EndpointSet<T> {
        let mut set = EndpointSet::new().ejection_rules(self.ejection_rules);
        if self.keeps_failing {
            set = set.without_ejections();
        }
        if let Some(share) = self.spill {
            set = set.spill(share);
        }
        if self.tiers_share_state {
            set = set.tiers_share_state();
        }
        match self.subset {
            Some((most, Some(index))) => set.subset_of(most, index),
            Some((most, None)) => set.subset(most, random::seed()),
            None => set,
        }
    }

    pub(super) fn validate(&self) -> Vec<Warning> {
        Combined { attempt_timeout: self.attempt_timeout, ..Combined::default() }.validate()
    }
}

impl<S> Endpoints<S> {
    pub(super) fn of(source: S) -> Self {
        Self { source, settings: Settings::default() }
    }

    /// Turns ejections off. Failing endpoints stay in service, and only their latency, load and failure rate steer
    /// calls away from them. So do endpoints that accept no connection or have asked for a wait.
    ///
    /// By default, an endpoint is ejected for 5 s to 12 s after 5 consecutive failures. It is also ejected if it gets
    /// 20 or more calls within 10 s and at least half of them fail. Without tiers, at most half of the endpoints are
    /// out of service for these reasons; if more than half fail, they stay in service. An endpoint that accepts no
    /// connection is ejected for 1 s to 12 s, and one that asks for a wait until it is over.
    pub fn without_ejections(mut self) -> Self {
        self.settings.keeps_failing = true;
        self
    }

    /// Sets the rules by which failing endpoints are ejected: how many failures, for how long, and how many endpoints
    /// at most. For their defaults see [`without_ejections`](Self::without_ejections).
    pub fn ejection_rules(mut self, rules: EjectionRules) -> Self {
        self.settings.ejection_rules = rules;
        self
    }

    /// Uses at most `most` endpoints of each tier. Default: all. Set this if there are more than 100 endpoints.
    ///
    /// Each client chooses its own subset at random. An update replaces as few endpoints as possible. Random choices
    /// are uneven: if clients × `most` is less than 5 × the number of endpoints, some endpoints may have no client.
    /// With 50 clients of 20 endpoints each, that is 37 % of 1,000. Then give each client an index:
    /// [`subset_of`](Self::subset_of).
    pub fn subset(mut self, most: NonZeroUsize) -> Self {
        self.settings.subset = Some((most, None));
        self
    }

    /// Uses at most `most` endpoints of each tier, so that all clients together use all endpoints evenly.
    ///
    /// The clients of a service have the indices 0, 1, 2 and so on, such as the ordinal of a pod in a StatefulSet, or
    /// the number of a shard. The numbers of clients of any two endpoints differ by at most one, if all clients list
    /// the same names and use the same `most`. If a tenth of the endpoints is replaced, a client replaces about a
    /// quarter of its endpoints, where [`subset`](Self::subset) replaces an eighth.
    ///
    /// ```
    /// use std::num::NonZeroUsize;
    /// use std::time::Duration;
    /// use reattempt::endpoints::Endpoints;
    ///
    /// # fn main() -> Result<(), reattempt::endpoints::EndpointsError> {
    /// let pod = std::env::var("HOSTNAME").unwrap_or_default(); // shop-17
    /// let index = pod.rsplit('-').next().and_then(|ordinal| ordinal.parse().ok()).unwrap_or(0);
    /// let endpoints = Endpoints::dns("orders.default.svc:50051", Duration::from_secs(5))?
    ///     .subset_of(NonZeroUsize::MIN.saturating_add(19), index);
    /// # Ok(())
    /// # }
    /// ```
    pub fn subset_of(mut self, most: NonZeroUsize, index: u64) -> Self {
        self.settings.subset = Some((most, Some(index)));
        self
    }

    /// Sends a share of a tier's calls to the next tier, from 0 to 1, and more if servers of the tier are out
    /// of service. Default: a tier takes all calls while half of it is in service. Other shares are limited
    /// to that range.
    ///
    /// A tier takes at most 1.4 times its part in service, as Envoy's priorities do. So one with at least 72 % of its
    /// servers in service takes all calls but the share. Use it for zones, whose servers are sized for their own zone:
    /// with a share such as 0.1, connections to the next zone are open before they are needed. For a second region that
    /// is used in outages only, keep the default. It spills later, and a returning tier is not overloaded by it.
    pub fn spill(mut self, share: f64) -> Self {
        self.settings.spill = Some(share);
        self
    }

    /// States that all tiers share their state, as zones with one database do. A POST with an idempotency key is then
    /// retried in any tier. By default, it is retried only in the tier that may have processed it.
    pub fn tiers_share_state(mut self) -> Self {
        self.settings.tiers_share_state = true;
        self
    }

    /// Sets the time limit of each attempt at an endpoint, up to the response head. Default: no limit. A request for
    /// another host, or for one server of the set by its name, passes without this limit.
    ///
    /// A timeout is recorded as a failure of the endpoint, and an outer retry layer sends the request to another
    /// endpoint immediately.
    #[doc(alias = "timeout")]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.settings.attempt_timeout = Some(timeout);
        self
    }

    /// Returns the time limit of each attempt.
    #[doc(hidden)]
    pub fn get_attempt_timeout(&self) -> Option<Duration> {
        self.settings.attempt_timeout
    }

    /// Adds an observer of the set's changes. It runs on the task that causes a change, and must not block.
    pub fn observe<F: Fn(&EndpointEvent) + Send + Sync + 'static>(mut self, observer: F) -> Self {
        self.settings.observers.push(Arc::new(observer));
        self
    }
}

impl<S: Keyed> Endpoints<S> {
    /// Sets the function that gives each endpoint its place by its key. Default: the place that the source gives it.
    ///
    /// The function gets the place by the source: the tier of a list ([`or_else`](Endpoints::or_else)), and otherwise
    /// the first tier. It is called without a lock, for all keys of a list, and again for all after each look-up and
    /// each change. If it returns another place than before, the endpoint keeps its state and its connections.
    ///
    /// If it panics in a discovery task, nothing changes, observers are notified, and it is called again later.
    /// Otherwise, the panic reaches the caller that builds the client or updates the set.
    ///
    /// Servers of this zone first, with a tenth of the calls for those of other zones, and more if servers of this zone
    /// are out of service. A canary gets a smaller weight:
    ///
    /// ```
    /// use std::fmt;
    /// use std::time::Duration;
    /// use reattempt::endpoints::Endpoints;
    ///
    /// struct Pod {
    ///     address: String,
    ///     zone: &'static str,
    ///     weight: u32,
    /// }
    ///
    /// // The name of the endpoint.
    /// impl fmt::Display for Pod {
    ///     fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    ///         f.write_str(&self.address)
    ///     }
    /// }
    ///
    /// async fn pods() -> std::io::Result<Vec<Pod>> {
    ///     Ok(vec![Pod { address: "10.0.0.7:8080".to_owned(), zone: "eu-1a", weight: 100 }])
    /// }
    ///
    /// let endpoints = Endpoints::look_up(Duration::from_secs(10), pods)
    ///     .placed(|pod, place| place.tier(usize::from(pod.zone != "eu-1a")).weight(pod.weight))
    ///     .spill(0.1)
    ///     .tiers_share_state();
    /// ```
    pub fn placed<F>(mut self, place: F) -> Self
    where
        F: Fn(&S::Key, Place) -> Place + Send + Sync + 'static,
    {
        *self.source.placing() = Placing(Some(Arc::new(place)));
        self
    }
}

impl<S> std::fmt::Debug for Endpoints<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoints")
            .field("ejects", &!self.settings.keeps_failing)
            .field("ejection_rules", &self.settings.ejection_rules)
            .field("subset", &self.settings.subset)
            .field("spill", &self.settings.spill)
            .field("attempt_timeout", &self.settings.attempt_timeout)
            .finish_non_exhaustive()
    }
}
