//! Settings of the protocols that speak HTTP.

use std::borrow::Cow;
use std::sync::Arc;

use http::{StatusCode, Uri};
use reattempt_core::{Classify, Schedule, Verdict};
use reattempt_http::{Hints, ReplayLimits};

use super::RetryPolicy;
use crate::protocol::{Grpc, Http, Outcome};

impl<D, B, M> RetryPolicy<Http, D, B, M>
where
    D: Schedule + Clone,
    B: Clone,
{
    /// How much of request bodies is kept, for one call and in all. Default 64 KiB and 64 MiB; a
    /// body that does not fit is sent once and not retried.
    pub fn replay(self, limits: ReplayLimits) -> Self {
        self.set(|settings| settings.protocol.replay = limits)
    }

    /// Which server hints are read. Default: all but the resets of rate limits.
    pub fn hints(self, hints: Hints) -> Self {
        self.set(|settings| settings.protocol.hints = hints)
    }

    /// Gives one status a verdict of its own, in place of the table's.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt_core::{Failure, FailureKind, Verdict};
    /// use reattempt_tower::RetryPolicy;
    ///
    /// // This server answers 503 only before it has done anything: POSTs may be repeated, too.
    /// let refused = Verdict::Unprocessed(Failure::new(FailureKind::Server).with_code(503));
    /// let policy = RetryPolicy::http().on_status(StatusCode::SERVICE_UNAVAILABLE, refused);
    /// ```
    pub fn on_status(self, status: StatusCode, verdict: Verdict) -> Self {
        self.set(|settings| settings.protocol.set_status(status, verdict))
    }

    /// Adds a classifier. It is asked before the table, after those added before it; `None` from it
    /// leaves an outcome to the next in line, so no default is lost.
    ///
    /// ```
    /// use reattempt_core::{Failure, FailureKind, Verdict};
    /// use reattempt_tower::{Outcome, RetryPolicy};
    ///
    /// let policy = RetryPolicy::http().classify(|outcome: Outcome<'_>| {
    ///     let busy = outcome.headers()?.contains_key("x-busy");
    ///     busy.then_some(Verdict::Transient(Failure::new(FailureKind::Throttled)))
    /// });
    /// ```
    pub fn classify<C>(self, classifier: C) -> Self
    where
        C: for<'a> Fn(Outcome<'a>) -> Option<Verdict> + Send + Sync + 'static,
    {
        self.classify_with(classifier)
    }

    /// The same for a classifier that is a type of its own.
    pub fn classify_with<C>(self, classifier: C) -> Self
    where
        C: for<'a> Classify<Outcome<'a>> + Send + Sync + 'static,
    {
        self.set(|settings| settings.protocol.add_classifier(Arc::new(classifier)))
    }

    /// Gives every request that must not be repeated (POST, PATCH, …) an `Idempotency-Key`, the same
    /// on all attempts of a call, so that it may be. Off by default: the server must honour the key.
    pub fn generate_idempotency_keys(self, generate: bool) -> Self {
        self.set(|settings| settings.protocol.generate_keys = generate)
    }

    /// Whom a request counts for in the budget. Default: the authority of its URI.
    ///
    /// ```
    /// use reattempt_tower::RetryPolicy;
    /// // All hosts of one cluster fail together.
    /// let policy = RetryPolicy::http().destination(|_| "cluster".into());
    /// ```
    pub fn destination<F>(self, destination: F) -> Self
    where
        F: for<'a> Fn(&'a Uri) -> Cow<'a, str> + Send + Sync + 'static,
    {
        self.set(|settings| settings.protocol.destination = Some(Arc::new(destination)))
    }

    /// How many bytes of a refused response are read so that its connection can be used again;
    /// beyond that it is closed. Default 16 KiB.
    pub fn discard_limit(self, bytes: u64) -> Self {
        self.set(|settings| settings.protocol.discard_limit = bytes)
    }
}

impl<D, B, M> RetryPolicy<Grpc, D, B, M>
where
    D: Schedule + Clone,
    B: Clone,
{
    /// How much of requests is kept, for one call and in all. Default 256 KiB and 64 MiB.
    pub fn replay(self, limits: ReplayLimits) -> Self {
        self.set(|settings| settings.protocol.http.replay = limits)
    }
}
