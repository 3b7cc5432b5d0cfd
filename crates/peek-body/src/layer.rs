//! The layer that reads response bodies ahead, and its settings.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::{Classification, Classifier};
use reattempt_engine::classify::{Outcome, RequestView};
use reattempt_engine::wall::BodyVerdict;
use tower_layer::Layer;

use super::PeekBody;
use super::settings::Settings;

/// A layer that reads the body of a response as part of its attempt, if it is short.
///
/// Put it **inside** everything that judges responses: retries, hedges, guards and endpoints.
///
/// ```
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use reattempt::{PeekBodyLayer, RetryLayer};
/// use tower::ServiceBuilder;
///
/// let client = ServiceBuilder::new()
///     .layer(RetryLayer::http())
///     .layer(PeekBodyLayer::new())
///     .service(Client::builder(TokioExecutor::new()).build_http());
/// # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
/// ```
///
/// | setting | default | reason |
/// |---|---|---|
/// | [`up_to`](Self::up_to) | 64 KiB | most answers of an API are shorter, and longer ones are read while they arrive |
/// | [`within`](Self::within) | 100 ms, for errors at least 1 s | a stream whose content type does not show it is delayed once, by less than people notice |
/// | [`in_all`](Self::in_all) | 16 MiB | 256 of the longest bodies |
/// | [`classify`](Self::classify) | no rules | the body of every service is different |
/// | [`choose`](Self::choose) | the same settings for all requests | |
///
/// Clones of a layer, and all services that it creates, share the memory.
#[derive(Debug, Clone)]
pub struct PeekBodyLayer {
    settings: Arc<Settings>,
}

impl PeekBodyLayer {
    /// Creates a layer with the default bounds and without rules.
    pub fn new() -> Self {
        BodyVerdict::begin();
        Self { settings: Arc::default() }
    }

    /// Sets the length in bytes up to which a body is read. Default: 64 KiB.
    ///
    /// A body that is known to be longer is handed on at once. A body of unknown length is handed on when it exceeds
    /// this length, or consists of more than 512 frames. With 0, no body is read.
    #[must_use]
    pub fn up_to(self, bytes: usize) -> Self {
        self.changed(|settings| settings.up_to(bytes))
    }

    /// Sets the time for which a body of unknown length is held. Default: 100 ms.
    ///
    /// The body of a response other than 2xx is held for at least 1 s. A body of known length has no limit of its own:
    /// it is covered by the limits of the attempt and of the call. It gets this limit too if the request's own body is
    /// streamed, because the server may wait for the rest of it.
    ///
    /// Without a tokio runtime, bodies of unknown length are handed on at once.
    #[must_use]
    pub fn within(self, time: Duration) -> Self {
        self.changed(|settings| Settings { within: time, ..settings })
    }

    /// Sets the number of bytes that the responses of this layer hold at the same time. Default: 16 MiB.
    ///
    /// A response that does not fit is handed on with the frames that were read. A destination gets more memory only if
    /// its total is then at most as large as the memory that stays free, as in
    /// [`ReplayMemory`](reattempt_engine::body::ReplayMemory). A response is held until its caller has read what was
    /// read ahead. A frame may keep its client's whole read buffer alive; only its own length is counted.
    #[must_use]
    pub fn in_all(self, bytes: usize) -> Self {
        self.changed(|settings| settings.in_all(bytes))
    }

    /// Adds a rule that judges responses by their whole body. Rules are asked in the order in which they were added.
    ///
    /// The rule gets the head, the [body](Outcome::body) and the [method](Outcome::method). If it returns `None`, the
    /// next rule or the head decides. [`classify`](mod@reattempt_engine::classify) has the rules of services.
    ///
    /// The rule is not asked if the body is longer than the bounds, broke, or has a `content-encoding`.
    ///
    /// ```
    /// use reattempt::classify::{Outcome, json_any};
    /// use reattempt::{PeekBodyLayer, Verdict};
    ///
    /// // This GraphQL server answers 200 to calls beyond the limit.
    /// let layer = PeekBodyLayer::new().classify(|outcome: Outcome<'_>| {
    ///     let path = ["errors", "*", "extensions", "code"];
    ///     let limited = json_any(outcome.body()?, &path, &mut |code| code == "RATE_LIMITED");
    ///     limited.then(Verdict::throttled)
    /// });
    /// ```
    #[must_use]
    pub fn classify<C, V>(self, rule: C) -> Self
    where
        C: for<'a> Fn(Outcome<'a>) -> Option<V> + Send + Sync + 'static,
        V: Into<Classification>,
    {
        self.classify_with(rule)
    }

    /// Adds a rule whose type implements `Classifier`; [`classify`](Self::classify) takes a function.
    #[must_use]
    pub fn classify_with<C>(self, rule: C) -> Self
    where
        C: for<'a> Classifier<Outcome<'a>> + Send + Sync + 'static,
    {
        self.changed(|mut settings| {
            settings.rules.push(Arc::new(rule));
            settings
        })
    }

    /// Sets a function that returns the settings for a request, or `None` for those of this layer. Default: none.
    ///
    /// The function is called for each attempt, with the request that is sent: behind
    /// [endpoints](https://docs.rs/reattempt/latest/reattempt/endpoints/index.html), the destination is that of the
    /// server. Derive all layers from clones of one layer, so that they share its memory. A function of the returned
    /// layer is not called.
    ///
    /// ```
    /// use std::time::Duration;
    ///
    /// use reattempt::PeekBodyLayer;
    /// use reattempt::classify;
    ///
    /// // S3 may take minutes before it reports in the body whether the copy succeeded.
    /// let layer = PeekBodyLayer::new();
    /// let s3 = layer.clone().within(Duration::from_secs(600)).classify(classify::aws_xml);
    /// let layer = layer.choose(move |request| {
    ///     request.authority().is_some_and(|host| host.ends_with(".amazonaws.com")).then(|| s3.clone())
    /// });
    /// ```
    #[must_use]
    pub fn choose(self, settings_of: impl Fn(RequestView<'_>) -> Option<Self> + Send + Sync + 'static) -> Self {
        let choose = move |request: RequestView<'_>| settings_of(request).map(|layer| layer.settings);
        self.changed(|settings| Settings { choose: Some(Arc::new(choose)), ..settings })
    }

    fn changed(self, change: impl FnOnce(Settings) -> Settings) -> Self {
        Self { settings: Arc::new(change(Arc::unwrap_or_clone(self.settings))) }
    }

    /// Returns the number of bytes that the responses of this layer hold now.
    pub fn held(&self) -> usize {
        self.settings.limits.memory_ref().used()
    }
}

impl Default for PeekBodyLayer {
    fn default() -> Self {
        Self::new()
    }
}

impl<S> Layer<S> for PeekBodyLayer {
    type Service = PeekBody<S>;

    fn layer(&self, inner: S) -> PeekBody<S> {
        PeekBody::new(inner, Arc::clone(&self.settings))
    }
}
