//! Setters of [`Http`], and those that it has in common with other protocols whose calls are HTTP messages.

use http::StatusCode;
use reattempt_core::{Verdict, Warning};
use reattempt_http::Hints;

use super::Http;

/// Setters of every protocol whose calls are HTTP messages; `$http` returns the [`Http`] inside.
macro_rules! message_setters {
    ($http:ident) => {
        /// Sets how much of request bodies is kept, for each call and for all calls.
        ///
        /// Default: 64 KiB for each call (256 KiB for protocols of short messages) and 64 MiB for all. A body in memory
        /// is kept by reference, whatever its size. So is a body whose first frame is all of it, such as a boxed
        /// `Full`; below 256 KiB that frame is copied. A body that does not fit is sent once and not retried. If the
        /// body of a hedged call outgrows the limit, the attempt that has read most goes on alone (BUF-8).
        ///
        /// A destination holds at most as much of the limit for all calls as is still free, so one that hangs leaves
        /// room for the others. [`ReplayMemory`](crate::body::ReplayMemory) has the figures.
        #[must_use]
        pub fn replay(mut self, limits: reattempt_replay::ReplayLimits) -> Self {
            self.$http().replay = limits.by_destination();
            self
        }

        /// Adds a classifier. It is called before the table, after the classifiers added before it. If it returns
        /// `None`, the next in line classifies the outcome, so no default is lost.
        ///
        /// The classifier returns a verdict, or a verdict with a server hint: a delay that the server gives in its own
        /// way, or [`Stop`](crate::classify::ServerHint::Stop). Such a delay replaces the one in the headers that
        /// [`Hints`](crate::classify::Hints) reads. A `Stop` counts from the classifier and from the headers.
        ///
        /// It sees the response head or the error, and [the request](crate::classify::Outcome::request), of which
        /// nothing is copied.
        ///
        /// | layer | effect of the verdict |
        /// |---|---|
        /// | retries | as the [`Verdict`](crate::Verdict) states |
        /// | hedging | a response whose verdict is transient or "not processed" is not fatal to the call (HG-4). An error is fatal only if the request's own body failed |
        /// | guards | see [`guard`](crate::guard) |
        ///
        /// ```
        /// use reattempt::{Http, RetryPolicy, Verdict};
        /// use reattempt::classify::Outcome;
        /// use reattempt::schedule::{Failure, FailureKind};
        ///
        /// let policy = RetryPolicy::with(Http::new().classify(|outcome: Outcome<'_>| {
        ///     let busy = outcome.headers()?.contains_key("x-busy");
        ///     busy.then_some(Verdict::Transient(Failure::new(FailureKind::Throttled)))
        /// }));
        /// ```
        ///
        /// ```
        /// use std::time::Duration;
        /// use reattempt::{Http, RetryPolicy, Verdict};
        /// use reattempt::classify::{Outcome, ServerHint};
        ///
        /// // While a search is being indexed, the server responds 404 with the seconds to wait.
        /// let policy = RetryPolicy::with(Http::new().classify(|outcome: Outcome<'_>| {
        ///     let wait = outcome.headers()?.get("x-indexed-in")?.to_str().ok()?.parse().ok()?;
        ///     let search = outcome.status()? == 404 && outcome.request()?.path() == "/search";
        ///     let hint = ServerHint::After(Duration::from_secs(wait));
        ///     search.then(|| Verdict::transient().with_hint(hint))
        /// }));
        /// ```
        #[doc(alias("predicate", "retry_if", "retry_on", "classifier"))]
        #[must_use]
        pub fn classify<C, V>(self, classifier: C) -> Self
        where
            C: for<'a> Fn($crate::call::outcome::Outcome<'a>) -> Option<V> + Send + Sync + 'static,
            V: Into<reattempt_core::Classification>,
        {
            self.classify_with(classifier)
        }

        /// Adds a classifier that is a type of its own, as [`classify`](Self::classify) adds a function.
        #[must_use]
        pub fn classify_with<C>(mut self, classifier: C) -> Self
        where
            C: for<'a> reattempt_core::Classifier<$crate::call::outcome::Outcome<'a>> + Send + Sync + 'static,
        {
            self.$http().add_classifier(std::sync::Arc::new(classifier));
            self
        }

        /// Adds a rule that chooses options by the request: by its method, its path or a header.
        ///
        /// Every layer with this protocol calls it before it sends a request, possibly more than once. Guards inside
        /// a retry layer do so for each attempt. The precedence is: the options in the request, those of the
        /// handle, those of a rule. If several rules set an option, the first rule has precedence.
        ///
        /// The rule is given a view, not `http::request::Parts`: those would have to be made from each request.
        ///
        /// ```
        /// use reattempt::{CallOptions, Http, RetryPolicy};
        /// use reattempt::hedge::HedgePolicy;
        ///
        /// // This API reads by POST below /search, and a batch has time.
        /// let http = Http::new()
        ///     .options_for(|request| {
        ///         let search = request.path().starts_with("/search");
        ///         search.then(|| CallOptions::new().repeatable(true))
        ///     })
        ///     .options_for(|request| {
        ///         let batch = request.header("x-priority")? == b"batch";
        ///         batch.then(|| CallOptions::new().max_attempts(5))
        ///     });
        /// let (retries, hedges) = (RetryPolicy::with(http.clone()), HedgePolicy::with(http));
        /// ```
        #[must_use]
        pub fn options_for<F>(mut self, rule: F) -> Self
        where
            F: for<'a> Fn($crate::call::request_view::RequestView<'a>) -> Option<$crate::call::options::CallOptions>
                + Send
                + Sync
                + 'static,
        {
            self.$http().add_options_for(std::sync::Arc::new(rule));
            self
        }

        /// Sets the key of a request's destination, for budgets and guards.
        ///
        /// Default: the host of the URI in lower case, with the port unless it is the scheme's own. The scheme precedes
        /// it unless it is http (`https://one.example`). The dot at the end of an absolute name is left out. All
        /// requests whose URI has no host share the key `""`, unless [`destination_by_host`](Self::destination_by_host)
        /// is set.
        ///
        /// Events and traces contain the key, so it should have neither user information nor a query. A key of more
        /// than 255 bytes is replaced by its hash.
        ///
        /// ```
        /// use reattempt::{Http, RetryPolicy};
        ///
        /// // All hosts of one cluster fail together.
        /// let policy = RetryPolicy::with(Http::new().destination(|_| "cluster".into()));
        /// ```
        #[must_use]
        pub fn destination<F>(mut self, destination: F) -> Self
        where
            F: for<'a> Fn(&'a http::Uri) -> std::borrow::Cow<'a, str> + Send + Sync + 'static,
        {
            self.$http().destination = Some(std::sync::Arc::new(destination));
            self
        }

        /// Sets whether the `Host` field is the destination of a request whose URI has no host. Default `false`.
        ///
        /// In a reverse proxy such requests come from outside, and their callers choose the field. **With `true` each
        /// caller there chooses his own bulkhead, breaker and budget**, and escapes the limits of the others. Use it
        /// only if the client itself writes the field, or if its values were checked. A key by
        /// [`destination`](Self::destination) goes first.
        #[must_use]
        pub fn destination_by_host(mut self, by_host: bool) -> Self {
            self.$http().by_host = by_host;
            self
        }

        /// Sets whether a reset of an HTTP/2 stream with REFUSED_STREAM proves that the request was not processed.
        /// Default `true` (RFC 9113 §8.7).
        ///
        /// Some proxies, such as haproxy 2.6, reset a stream with that code after their backend has processed the
        /// request. Behind such a proxy a POST without an idempotency key runs more than once. With `false` the reset
        /// counts as a lost connection: only requests that may be repeated are retried.
        ///
        /// A reqwest client retries such streams by itself, up to twice. Turn that off with
        /// `ClientBuilder::retry(reqwest::retry::never())`.
        #[must_use]
        pub fn refused_stream_is_proof(mut self, proof: bool) -> Self {
            self.$http().refused_stream_is_proof = proof;
            self
        }

        /// Sets how many bytes of a refused response are read, so that its connection can be used again. The connection
        /// of a longer response is closed. Default 16 KiB: more than an error page has, and less than a new connection
        /// costs.
        #[must_use]
        pub fn drain_limit(mut self, bytes: u64) -> Self {
            self.$http().drain_limit = bytes;
            self
        }
    };
}

pub(crate) use message_setters;

impl Http {
    /// Creates the protocol with every default, which its setters document.
    pub fn new() -> Self {
        Self::default()
    }

    message_setters!(itself);

    /// Sets which server hints are read. The default is all but the quotas of rate limits, which retries wait for and a
    /// [`RateLimit`](crate::guard::RateLimit) follows.
    #[must_use]
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// Gives one status a verdict of its own, in place of the table's.
    ///
    /// The first of these that applies decides about a response:
    ///
    /// 1. the classifiers of the call, then those of the protocol;
    /// 2. this verdict;
    /// 3. `x-should-retry: true` or `stripe-should-retry: true` from the server;
    /// 4. the table.
    ///
    /// So `on_status(StatusCode::TOO_MANY_REQUESTS, Verdict::Permanent)` ends the call even if the server asks
    /// for a retry. If the server asks for no retry (`x-should-retry: false`), the call ends whatever the verdict is.
    /// [`Hints::should_retry`] turns both values off.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::{Http, RetryPolicy, Verdict};
    /// use reattempt::schedule::{Failure, FailureKind};
    ///
    /// // This server answers 503 only before it has done anything: POSTs may be repeated, too.
    /// let refused = Verdict::NotProcessed(Failure::new(FailureKind::Server).with_code(503));
    /// let http = Http::new().on_status(StatusCode::SERVICE_UNAVAILABLE, refused);
    /// let policy = RetryPolicy::with(http);
    /// ```
    #[doc(alias("retry_on", "status_codes"))]
    #[must_use]
    pub fn on_status(mut self, status: StatusCode, verdict: Verdict) -> Self {
        self.set_status(status, verdict);
        self
    }

    /// Sets whether every request that must not be repeated (POST, PATCH, …) gets an `Idempotency-Key`, so that it may
    /// be repeated. All attempts of a call have the same key. Default `false`, because the server must honour the key.
    ///
    /// Only the retry layer generates keys: a server would refuse a hedge with the key of an attempt under way. A call
    /// with a key is retried for 24 hours at most, the time for which servers usually keep keys.
    ///
    /// If several retry layers send the same call, the outermost must generate the key. A key of an inner layer is new
    /// for each attempt of the outer one, which sees only the last outcome inside. If that is a 429 after a lost
    /// connection, the POST may be processed twice.
    ///
    /// After an [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) or a lost connection, the server may still
    /// process the first attempt, and respond 409 to the next one. That ends the call. If 409 has no other meaning, set
    /// `on_status(StatusCode::CONFLICT, Verdict::Transient(…))`: the call is then retried until the server responds
    /// with the outcome of the first attempt.
    #[must_use]
    pub fn generate_idempotency_keys(mut self, generate: bool) -> Self {
        self.generate_keys = generate;
        self
    }

    /// Sets whether an `Idempotency-Key` that a request comes with makes it repeatable. Default `true`.
    ///
    /// A proxy forwards keys that its own callers have chosen. Use `false` there unless the servers behind it
    /// honour keys: a server that ignores them processes a repeated POST twice. Keys that this layer
    /// [generates](Self::generate_idempotency_keys) are not affected. The key of a request is never changed.
    ///
    /// ```
    /// use reattempt::{Http, RetryPolicy};
    ///
    /// let of_proxy = RetryPolicy::with(Http::new().trust_idempotency_keys(false));
    /// ```
    #[must_use]
    pub fn trust_idempotency_keys(mut self, trusted: bool) -> Self {
        self.trust_keys = trusted;
        self
    }

    /// Sets whether the service below follows redirects by itself. By default the layer looks for signs of it.
    ///
    /// The server that responds with a redirect has processed the request, and a later hop may then be
    /// refused. So behind a service that follows redirects nothing proves that a request was not
    /// processed. A request that must not be repeated is then not retried, for the stop reason
    /// [`EarlierHop`](crate::StopReason::EarlierHop).
    ///
    /// The signs are:
    ///
    /// - The client is a `reqwest::Client`, or the error contains a `reqwest::Error` (feature `reqwest`).
    /// - The response comes from tower-http's `FollowRedirect` (feature `tower-http`), or from a service
    ///   around a `reqwest::Client` (feature `reqwest`).
    /// - No connection could be made, or a layer on this side refused the attempt, and the request's body had been
    ///   polled before. An empty body counts as polled once a client asks for its length.
    ///
    /// A `REFUSED_STREAM` or GOAWAY that ends a later hop shows no sign, because the body may have been polled
    /// for a first hop too. Bodies that are sent by reqwest show no sign of the last kind. If a service of your
    /// own follows redirects, or sends a request twice, use `true`. If the client follows none, such as a reqwest
    /// client with `redirect::Policy::none()`, use `false`. A POST is then retried after 429 or a refused
    /// connection.
    /// It is best to place tower-http's `FollowRedirect` outside the retry layer.
    #[must_use]
    pub fn redirects_below(mut self, follows: bool) -> Self {
        self.redirects = Some(follows);
        self
    }

    /// Returns a warning for each setting that was changed and that only retries use.
    pub(super) fn retry_only_settings(&self) -> Vec<Warning> {
        let settings = [
            ("generate_idempotency_keys", self.generate_keys.then_some(true)),
            ("trust_idempotency_keys", (!self.trust_keys).then_some(false)),
            ("refused_stream_is_proof", (!self.refused_stream_is_proof).then_some(false)),
            ("redirects_below", self.redirects),
        ];
        let unused = "the default, because hedging does not use it";
        let warning = |(field, value): (_, Option<bool>)| Some(Warning::new(field, value?, unused));
        settings.into_iter().filter_map(warning).collect()
    }

    fn itself(&mut self) -> &mut Self {
        self
    }
}
