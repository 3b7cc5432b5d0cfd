//! The settings of a set of endpoints, and their builder.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::{EndpointEvent, EndpointSet, Place};
use reattempt_core::Warning;
use reattempt_engine::wall::no_time_for_attempts;

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
    subset: Option<NonZeroUsize>,
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
        let mut set = EndpointSet::new();
        if self.keeps_failing {
            set = set.without_ejections();
        }
        match self.subset {
            Some(most) => set.subset(most, random::seed()),
            None => set,
        }
    }

    pub(super) fn validate(&self) -> Vec<Warning> {
        self.attempt_timeout.and_then(no_time_for_attempts).into_iter().collect()
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

    /// Uses at most `most` endpoints of each tier. Default: all. Set this if there are more than 100 endpoints.
    ///
    /// Each client chooses its own subset. An update replaces as few endpoints as possible.
    pub fn subset(mut self, most: NonZeroUsize) -> Self {
        self.settings.subset = Some(most);
        self
    }

    /// Sets the time limit of each attempt, up to the response head. Default: no limit.
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
    /// Servers of this zone first, and those of other zones if these are out of service:
    ///
    /// ```
    /// use std::fmt;
    /// use std::time::Duration;
    /// use reattempt::endpoints::Endpoints;
    ///
    /// struct Pod {
    ///     address: String,
    ///     zone: &'static str,
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
    ///     Ok(vec![Pod { address: "10.0.0.7:8080".to_owned(), zone: "eu-1a" }]) // from a registry
    /// }
    ///
    /// let endpoints = Endpoints::look_up(Duration::from_secs(10), pods)
    ///     .placed(|pod, place| place.tier(usize::from(pod.zone != "eu-1a")));
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
            .field("subset", &self.settings.subset)
            .field("attempt_timeout", &self.settings.attempt_timeout)
            .finish_non_exhaustive()
    }
}
