//! The settings of a set of endpoints, and the builder that has them.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use reattempt_control::{EndpointEvent, EndpointSet};
use reattempt_core::Warning;

use super::random;
use crate::call::settings::no_time_for_attempts;

/// An observer of the changes of a set.
pub(super) type EventObserver = Arc<dyn Fn(&EndpointEvent) + Send + Sync>;

/// Servers that take each other's requests, before a client is made for them.
///
/// `S` is the source of the servers: a list, a look-up, or a `tower::discover::Discover`.
#[must_use = "`.http()` or a layer makes a client of it"]
pub struct Endpoints<S> {
    pub(super) source: S,
    pub(super) settings: Settings,
}

#[derive(Clone, Default)]
pub(super) struct Settings {
    keeps_failing: bool,
    subset: Option<NonZeroUsize>,
    pub(super) attempt_timeout: Option<Duration>,
    pub(super) observers: Vec<EventObserver>,
}

impl Settings {
    /// Creates an empty set.
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

    /// Keeps failing endpoints in service. Their price alone decides.
    ///
    /// By default 5 failures in a row, or half of 20 calls or more in 10 s, put an endpoint out for 5 s to 36 s. At
    /// most half of the endpoints are out; if more fail, none is.
    pub fn without_ejections(mut self) -> Self {
        self.settings.keeps_failing = true;
        self
    }

    /// Uses at most `most` of the endpoints, for sets of more than 100. Default: all.
    ///
    /// Each client chooses others, and an update replaces as few of them as possible.
    pub fn subset(mut self, most: NonZeroUsize) -> Self {
        self.settings.subset = Some(most);
        self
    }

    /// Sets the most time for each attempt, up to the head of its response. Default: no limit.
    ///
    /// A timeout counts as a failure of the endpoint, and a retry layer outside sends the request elsewhere at once.
    #[doc(alias = "timeout")]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.settings.attempt_timeout = Some(timeout);
        self
    }

    /// Adds an observer of the changes of the set. It is called on the task that causes a change, and must not block.
    pub fn observe<F>(mut self, observer: F) -> Self
    where
        F: Fn(&EndpointEvent) + Send + Sync + 'static,
    {
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
