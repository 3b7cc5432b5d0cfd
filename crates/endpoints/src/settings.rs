//! The settings of a set of endpoints, and their builder.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::{EndpointEvent, EndpointSet};
use reattempt_core::{Combined, Warning};

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

    /// Uses at most `most` endpoints of each tier. Default: all. Set this if there are more than 100 endpoints.
    ///
    /// Each client chooses its own subset. An update replaces as few endpoints as possible.
    pub fn subset(mut self, most: NonZeroUsize) -> Self {
        self.settings.subset = Some(most);
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

impl<S> std::fmt::Debug for Endpoints<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoints")
            .field("ejects", &!self.settings.keeps_failing)
            .field("subset", &self.settings.subset)
            .field("attempt_timeout", &self.settings.attempt_timeout)
            .finish_non_exhaustive()
    }
}
