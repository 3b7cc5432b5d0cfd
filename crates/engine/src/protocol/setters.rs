//! The setters of [`Http`], and those that all protocols with HTTP messages share.

use http::StatusCode;
use reattempt_core::{Verdict, Warning};
use reattempt_http::Hints;

use super::Http;
use crate::call::deadline_header::DeadlineHeader;

/// Defines the setters of every protocol with HTTP messages; `$http` returns its [`Http`].
macro_rules! message_setters {
    ($http:ident) => {
        /// Sets how much of each request body is saved for replay, per call and in total.
        ///
        /// Default: 64 KiB per call (256 KiB for protocols with short messages) and 64 MiB in total. A body in memory
        /// is saved by reference, whatever its size. A body that consists of one frame, such as a boxed `Full`, is also
        /// saved completely; a frame below 256 KiB is copied. A body that does not fit is sent once and not retried. If
        /// a hedged call's body outgrows the limit, only the attempt that has read the most continues.
        ///
        /// A destination gets more memory only if its total is then at most as large as the memory that stays free. A
        /// destination that hangs thus leaves memory for others. [`ReplayMemory`](crate::body::ReplayMemory) describes
        /// the resulting shares.
        // BUF-8
        #[must_use]
        pub fn replay(mut self, limits: reattempt_replay::ReplayLimits) -> Self {
            self.$http().replay = limits.by_destination();
            self
        }

        /// Adds a classifier, which is called after the classifiers added earlier and before the default rules. If it
        /// returns `None`, the next classifier or the default rules classify the outcome, so the defaults still apply.
        ///
        /// The classifier returns a verdict, optionally with a server hint: a delay in the server's own format, or
        /// [`Stop`](crate::classify::ServerHint::Stop). Such a delay replaces the one that
        /// [`Hints`](crate::classify::Hints) reads from the headers. A `Stop` from the classifier or from the headers
        /// ends the call.
        ///
        /// The classifier can read the response head or the error, and
        /// [the request](crate::classify::Outcome::request), without a copy.
        ///
        /// | layer | effect of the verdict |
        /// |---|---|
        /// | retries | as documented at [`Verdict`](crate::Verdict) |
        /// | hedging | a response whose verdict is transient or "not processed" is not fatal to the call. An error is fatal only if the request's own body failed |
        /// | guards | see [`guard`][guard] |
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
        /// // While a search is being indexed, the server responds with 404 and the seconds to wait.
        /// let policy = RetryPolicy::with(Http::new().classify(|outcome: Outcome<'_>| {
        ///     let wait = outcome.headers()?.get("x-indexed-in")?.to_str().ok()?.parse().ok()?;
        ///     let search = outcome.status()? == 404 && outcome.request()?.path() == "/search";
        ///     let hint = ServerHint::After(Duration::from_secs(wait));
        ///     search.then(|| Verdict::transient().with_hint(hint))
        /// }));
        /// ```
        ///
        /// [guard]: https://docs.rs/reattempt/latest/reattempt/guard/index.html
        // HG-4
        #[doc(alias("predicate", "retry_if", "retry_on", "classifier"))]
        #[must_use]
        pub fn classify<C, V>(self, classifier: C) -> Self
        where
            C: for<'a> Fn($crate::call::outcome::Outcome<'a>) -> Option<V> + Send + Sync + 'static,
            V: Into<reattempt_core::Classification>,
        {
            self.classify_with(classifier)
        }

        /// Adds a classifier whose type implements `Classifier`; [`classify`](Self::classify) takes a function.
        #[must_use]
        pub fn classify_with<C>(mut self, classifier: C) -> Self
        where
            C: for<'a> reattempt_core::Classifier<$crate::call::outcome::Outcome<'a>> + Send + Sync + 'static,
        {
            self.$http().add_classifier(std::sync::Arc::new(classifier));
            self
        }

        /// Adds a rule that sets options for requests, depending on their method, path or headers.
        ///
        /// Every layer with this protocol calls the rule before it sends a request, possibly more than once. Guards
        /// inside a retry layer call it for each attempt. The request's own options take precedence, then the handle's,
        /// then the rules'. If several rules set an option, the first rule takes precedence.
        ///
        /// The rule gets a view, which is cheaper than creating `http::request::Parts` for each request.
        ///
        /// ```
        /// use reattempt::{CallOptions, Http, RetryPolicy};
        /// use reattempt::hedge::HedgePolicy;
        ///
        /// // In this API, a POST below /search only reads, and a batch may take longer.
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

        /// Sets the function that determines a request's destination, which is the key for budgets and guards.
        ///
        /// Default: the URI's host in lower case, with the port unless it is the scheme's default. The destination
        /// begins with the scheme unless the scheme is http: `https://one.example`, but `one.example`. The final dot of
        /// an absolute name is removed. All requests without a host in the URI share the destination `""`, unless
        /// [`destination_by_host`](Self::destination_by_host) is set.
        ///
        /// Events and traces contain the destination, so it should contain neither userinfo nor a query. A destination
        /// of more than 255 bytes is replaced by its hash.
        ///
        /// ```
        /// use reattempt::{Http, RetryPolicy};
        ///
        /// // The hosts of one cluster fail together.
        /// let policy = RetryPolicy::with(Http::new().destination(|_| "cluster".into()));
        /// ```
        #[must_use]
        pub fn destination<F>(mut self, destination: F) -> Self
        where
            F: for<'a> Fn(&'a http::Uri) -> std::borrow::Cow<'a, str> + Send + Sync + 'static,
        {
            self.$http().destination =
                Some($crate::protocol::settings::DestinationRule::OfUri(std::sync::Arc::new(destination)));
            self
        }

        /// Sets the function that determines a request's destination from its head, such as a tenant in a header.
        ///
        /// Replaces a function set with [`destination`](Self::destination), whose rules apply here, too. A token or key
        /// does not belong in a destination: use the name of its account, or a hash of it.
        ///
        /// ```
        /// use reattempt::{Http, RetryPolicy};
        ///
        /// // The service limits each tenant on its own.
        /// let http = Http::new().destination_for(|request| {
        ///     String::from_utf8_lossy(request.header("x-tenant").unwrap_or_default())
        /// });
        /// let policy = RetryPolicy::with(http);
        /// ```
        #[must_use]
        pub fn destination_for<F>(mut self, destination: F) -> Self
        where
            F: for<'a> Fn($crate::call::request_view::RequestView<'a>) -> std::borrow::Cow<'a, str>
                + Send
                + Sync
                + 'static,
        {
            self.$http().destination =
                Some($crate::protocol::settings::DestinationRule::OfRequest(std::sync::Arc::new(destination)));
            self
        }

        /// Sets whether the `Host` header is the destination of a request whose URI has no host. Default: `false`.
        ///
        /// A reverse proxy receives such requests from outside, so external callers choose the header. **With `true`,
        /// each of them chooses its own bulkhead, breaker and budget**, and evades the limits that apply to others. Use
        /// `true` only if your own code sets the header or checks its values. A [`destination`](Self::destination)
        /// function takes precedence.
        #[must_use]
        pub fn destination_by_host(mut self, by_host: bool) -> Self {
            self.$http().by_host = by_host;
            self
        }

        /// Sets whether an HTTP/2 stream reset with REFUSED_STREAM proves that the request was not processed. Default:
        /// `true` (RFC 9113 §8.7).
        ///
        /// Some proxies, such as haproxy 2.6, reset a stream with that code after their backend processed the request.
        /// With such a proxy, a POST without an idempotency key could run more than once. With `false`, the reset is
        /// treated as a lost connection, so only repeatable requests are retried.
        ///
        /// reqwest itself retries such streams, up to twice. Turn that off with
        /// `ClientBuilder::retry(reqwest::retry::never())`.
        #[must_use]
        pub fn refused_stream_is_proof(mut self, proof: bool) -> Self {
            self.$http().refused_stream_is_proof = proof;
            self
        }

        /// Sets how many bytes of a refused response are read so that its connection can be reused. If the response is
        /// longer, the connection is closed. Default: 16 KiB, because most error pages are smaller, and reading more
        /// would cost more than a new connection.
        #[must_use]
        pub fn drain_limit(mut self, bytes: u64) -> Self {
            self.$http().drain_limit = bytes;
            self
        }
    };
}

pub(crate) use message_setters;

impl Http {
    /// Creates the protocol with the default of each setter.
    pub fn new() -> Self {
        Self::default()
    }

    message_setters!(itself);

    /// Sets which server hints are read. Default: all except rate-limit headers.
    ///
    /// Turn on rate-limit headers ([`Hints::rate_limit`]) if a [`RateLimit`][ratelimit] should adapt to
    /// the server's quota.
    ///
    /// [ratelimit]: https://docs.rs/reattempt/latest/reattempt/guard/struct.RateLimit.html
    #[must_use]
    pub fn hints(mut self, hints: Hints) -> Self {
        self.hints = hints;
        self
    }

    /// Overrides the default verdict for one status.
    ///
    /// The verdict for a response comes from the first of these that applies:
    ///
    /// 1. a classifier of the call, then one of the protocol;
    /// 2. this verdict;
    /// 3. `x-should-retry: true` or `stripe-should-retry: true` from the server;
    /// 4. the classifier of a [profile](crate::profile);
    /// 5. the [default rules](crate::Http).
    ///
    /// For example, `on_status(StatusCode::TOO_MANY_REQUESTS, Verdict::Permanent)` ends the call even if the server
    /// asks for a retry. If the server forbids a retry (`x-should-retry: false`), the call ends whatever the verdict
    /// is. [`Hints::should_retry`] controls whether these headers are read.
    ///
    /// ```
    /// use http::StatusCode;
    /// use reattempt::{Http, RetryPolicy, Verdict};
    /// use reattempt::schedule::{Failure, FailureKind};
    ///
    /// // This server sends 503 only if it has done nothing, so even a POST may be repeated.
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

    /// Sets whether every request that is not repeatable (POST, PATCH, …) gets an `Idempotency-Key`, which makes it
    /// repeatable. All attempts of a call have the same key. Default: `false`, because servers must support such keys.
    ///
    /// Only the retry layer generates keys, because a server would refuse a hedge with the key of an attempt in flight.
    /// A call with a key is retried for at most 24 hours, because servers usually keep keys that long.
    ///
    /// If several retry layers send the same call, the outermost must generate the key. An inner layer would generate a
    /// new key for each attempt of the outer layer. If the inner call loses a connection and then gets a 429, the outer
    /// layer would repeat the POST with a new key.
    ///
    /// After an [`attempt_timeout`](crate::RetryPolicy::attempt_timeout) or a lost connection, the server may still be
    /// processing the first attempt, and respond to the next one with 409. This response ends the call. If 409 has no
    /// other meaning, set `on_status(StatusCode::CONFLICT, Verdict::Transient(…))`. The call is then retried until the
    /// server returns the first attempt's outcome.
    #[must_use]
    pub fn generate_idempotency_keys(mut self, generate: bool) -> Self {
        self.generate_keys = generate;
        self
    }

    /// Sets whether an `Idempotency-Key` in the caller's request makes the request repeatable. Default: `true`.
    ///
    /// A proxy forwards keys that its own callers chose. Use `false` in a proxy unless its servers support keys,
    /// because a server that ignores keys processes a repeated POST twice. Keys that this layer
    /// [generates](Self::generate_idempotency_keys) are not affected. The layer never changes a request's key.
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

    /// Sets whether the inner service follows redirects. By default, the layer detects this.
    ///
    /// A server that responds with a redirect has processed the request, even if a later hop is then refused. If the
    /// inner service follows redirects, a refusal is therefore not proof. A request that is not repeatable is not
    /// retried, and the stop reason is [`EarlierHop`](crate::StopReason::EarlierHop).
    ///
    /// The layer assumes that redirects are followed in these cases:
    ///
    /// - The client is a `reqwest::Client`, or the error contains a `reqwest::Error` (feature `reqwest`).
    /// - The response comes from tower-http's `FollowRedirect` (feature `tower-http`), or from a service around a
    ///   `reqwest::Client` (feature `reqwest`).
    /// - The connection failed, or a layer of this client refused the attempt, although the request's body was polled.
    ///   An empty body counts as polled once a client reads its length.
    ///
    /// A `REFUSED_STREAM` or GOAWAY at a later hop cannot be detected, because the first hop polls the body too. The
    /// last case in the list cannot be detected for bodies sent by reqwest. If your own service follows redirects or
    /// sends a request twice, use `true`. If the client follows no redirects, such as a reqwest client with
    /// `redirect::Policy::none()`, use `false`. A POST is then retried after 429 or a refused connection. Preferably,
    /// put tower-http's `FollowRedirect` outside the retry layer.
    #[must_use]
    pub fn redirects_below(mut self, follows: bool) -> Self {
        self.redirects = Some(follows);
        self
    }

    /// Sets the header of each attempt with the time left until the call's [`Deadline`](crate::Deadline), so that the
    /// server can stop working in time. Default: none.
    ///
    /// The time is what is left when the attempt is sent, rounded down. A call without a deadline has no header. A
    /// header of this name in the caller's request is itself a deadline of the call: the earliest of its deadlines
    /// applies, and the header of each attempt is written anew. Only retry and hedge layers write it.
    ///
    /// The service behind reads it with an [`InboundDeadlineLayer`](crate::deadline::InboundDeadlineLayer).
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// use reattempt::deadline::DeadlineHeader;
    ///
    /// let policy = RetryPolicy::http().deadline_header(DeadlineHeader::envoy());
    /// ```
    // DL-2
    #[must_use]
    pub fn deadline_header(mut self, header: DeadlineHeader) -> Self {
        self.deadline_header = Some(header);
        self
    }

    /// Returns a warning for each changed setting that only retries use.
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
