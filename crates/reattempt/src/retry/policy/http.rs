//! Settings of the protocols that speak HTTP.

use std::borrow::Cow;
use std::sync::Arc;

use http::{StatusCode, Uri};
use reattempt_core::{Classifier, Schedule, Verdict};
use reattempt_http::Hints;
use reattempt_replay::ReplayLimits;

use super::RetryPolicy;
use crate::protocol::{Http, Messages, Outcome, Protocol};

/// Settings of HTTP and gRPC alike.
impl<K, D, B, M> RetryPolicy<K, D, B, M>
where
    K: Messages + Protocol + Clone,
    D: Schedule + Clone,
    B: Clone,
{
    /// How much of request bodies is kept, for one call and in all. Default 64 KiB (gRPC: 256 KiB) and
    /// 64 MiB; a body that does not fit is sent once and not retried.
    pub fn replay(self, limits: ReplayLimits) -> Self {
        self.set(|settings| settings.protocol.messages().replay = limits.by_destination())
    }

    /// Adds a classifier. It is asked before the table, after those added before it; `None` from it
    /// leaves an outcome to the next in line, so no default is lost.
    ///
    /// ```
    /// use reattempt_core::{Failure, FailureKind, Verdict};
    /// use reattempt::{Outcome, RetryPolicy};
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
        C: for<'a> Classifier<Outcome<'a>> + Send + Sync + 'static,
    {
        self.set(|settings| settings.protocol.messages().add_classifier(Arc::new(classifier)))
    }

    /// Whom a request counts for in the budget. Default: the host of its URI in lower case, with the port
    /// where it is not the scheme's own, behind the scheme where that is not http (`https://one.example`);
    /// that of the `Host` field where the URI has none.
    ///
    /// Events and traces show it: it should have no part of the URI's user information or query in it.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// // All hosts of one cluster fail together.
    /// let policy = RetryPolicy::http().destination(|_| "cluster".into());
    /// ```
    pub fn destination<F>(self, destination: F) -> Self
    where
        F: for<'a> Fn(&'a Uri) -> Cow<'a, str> + Send + Sync + 'static,
    {
        self.set(|settings| settings.protocol.messages().destination = Some(Arc::new(destination)))
    }

    /// Sets whether an HTTP/2 stream that the server resets with REFUSED_STREAM proves that the request was
    /// not processed. On by default, as RFC 9113 §8.7 has it.
    ///
    /// Some proxies reset a stream so after their backend has processed the request; haproxy 2.6 does.
    /// Behind such a proxy a POST without an idempotency key runs more than once. With `false` the reset
    /// counts as a lost connection: only requests that may be repeated are retried.
    ///
    /// A reqwest client retries such streams by itself, up to twice. Turn that off with
    /// `ClientBuilder::retry(reqwest::retry::never())`.
    pub fn refused_stream_is_proof(self, proof: bool) -> Self {
        self.set(|settings| settings.protocol.messages().refused_stream_is_proof = proof)
    }

    /// How many bytes of a refused response are read so that its connection can be used again;
    /// beyond that it is closed. Default 16 KiB.
    pub fn drain_limit(self, bytes: u64) -> Self {
        self.set(|settings| settings.protocol.messages().drain_limit = bytes)
    }
}

/// Settings of HTTP.
impl<D, B, M> RetryPolicy<Http, D, B, M>
where
    D: Schedule + Clone,
    B: Clone,
{
    /// Which server hints are read. Default: all but the resets of rate limits.
    pub fn hints(self, hints: Hints) -> Self {
        self.set(|settings| settings.protocol.hints = hints)
    }

    /// Gives one status a verdict of its own, in place of the table's.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt_core::{Failure, FailureKind, Verdict};
    /// use reattempt::RetryPolicy;
    ///
    /// // This server answers 503 only before it has done anything: POSTs may be repeated, too.
    /// let refused = Verdict::Unprocessed(Failure::new(FailureKind::Server).with_code(503));
    /// let policy = RetryPolicy::http().on_status(StatusCode::SERVICE_UNAVAILABLE, refused);
    /// ```
    pub fn on_status(self, status: StatusCode, verdict: Verdict) -> Self {
        self.set(|settings| settings.protocol.set_status(status, verdict))
    }

    /// Gives every request that must not be repeated (POST, PATCH, …) an `Idempotency-Key`, the same
    /// on all attempts of a call, so that it may be. Off by default: the server must honour the key.
    ///
    /// A server that is still at work on an earlier attempt may answer 409 to the next one, which ends the call.
    /// That follows on an [`attempt_timeout`](RetryPolicy::attempt_timeout) or a lost connection. Where 409 has
    /// no other meaning, `on_status(StatusCode::CONFLICT, Verdict::Transient(…))` makes the call wait for the
    /// outcome of the first.
    pub fn generate_idempotency_keys(self, generate: bool) -> Self {
        self.set(|settings| settings.protocol.generate_keys = generate)
    }

    /// Sets whether the service below follows redirects by itself. By default it does if there is a sign
    /// of it.
    ///
    /// The server that answers with a redirect has processed the request, and a later hop may then be
    /// refused. So behind a service that follows redirects nothing proves that a request was not
    /// processed, and a request that must not be repeated is not retried.
    ///
    /// The signs are:
    ///
    /// - The client is a `reqwest::Client`, or the error contains a `reqwest::Error` (feature `reqwest`).
    /// - The response comes of tower-http's `FollowRedirect` (feature `tower-http`), or of a service
    ///   around a `reqwest::Client` (feature `reqwest`).
    /// - No connection could be made, and the request's body had been polled before.
    ///
    /// A request with an empty body has no sign of the last kind. If a service of your own follows
    /// redirects, use `true`. With a client that follows none, such as a reqwest client with
    /// `redirect::Policy::none()`, use `false`: a POST is then retried after 429 or a refused connection.
    /// Best place tower-http's `FollowRedirect` outside the retry layer.
    pub fn redirects_below(self, follows: bool) -> Self {
        self.set(|settings| settings.protocol.redirects = Some(follows))
    }
}
