//! The layer that replaces failed outcomes, and its settings.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::Response;
use reattempt_engine::Http;
use reattempt_engine::observe::{Event, Observer};
use reattempt_engine::protocol::RequestProtocol;
use reattempt_engine::wall::{add_observer, protocol_setters};
use tower_layer::Layer;

use super::shared::Shared;
use super::{Backup, Failed, Fallback};

/// A layer that replaces the outcome of a failed call, after all retries.
///
/// Put it outside every other layer. A fallback response has a [`FellBack`](super::FellBack) in its extensions, which
/// contains the original outcome. The error type is tower's `BoxError`. If there is no replacement, the call returns
/// its original outcome.
///
/// ```
/// use bytes::Bytes;
/// use http::Response;
/// use reattempt::RetryLayer;
/// use reattempt::fallback::FallbackLayer;
/// use tower::ServiceBuilder;
///
/// let no_offers = |_: &_| Some(Response::new(Bytes::from_static(b"[]")));
/// let builder = ServiceBuilder::new()
///     .layer(FallbackLayer::http(no_offers))
///     .layer(RetryLayer::http());
/// ```
pub struct FallbackLayer<F, P = Http> {
    pub(crate) shared: Shared<F, P>,
}

impl<F: Fn(&Failed) -> Option<Response<Bytes>>> FallbackLayer<F> {
    /// Creates a layer that replaces the outcomes of failed HTTP calls with responses from a function. If the function
    /// returns `None`, the call returns its original outcome.
    pub fn http(make: F) -> Self {
        Self::with(Http::new(), make)
    }
}

impl<S> FallbackLayer<Backup<S>> {
    /// Creates a layer that sends the requests of failed calls to another service, the backup.
    ///
    /// The backup must have the client's response type, so put the same layers around it. Each request is cloned before
    /// it is sent. The backup's call has no time limit except the request's deadline.
    ///
    /// Once the backup is called, the call's outcome is the backup's. Its response is marked with
    /// [`FellBack`](super::FellBack), and its error is the source of a [`BackupFailed`](super::BackupFailed). Both
    /// contain the original outcome. The body of the failed response is dropped before the backup is called.
    ///
    /// A request that must not be processed twice is sent to the backup only if there is proof that it was not
    /// processed. An idempotency key does not suffice, because the backup may not know the key. A 429, a 425 or a
    /// [guard](reattempt_guard)'s refusal is proof. With [`redirects_below(false)`](Http::redirects_below), a failed
    /// connection and tower's `Overloaded` are proof too. A guard's refusal of a later redirect hop is not proof.
    ///
    /// This layer cannot detect whether an inner retry layer has already sent a reqwest request. For reqwest, no
    /// outcome is proof unless this layer has `redirects_below(false)` and does not generate idempotency keys. Give
    /// both layers the same [`Http`](reattempt_engine::Http), so that both have the same key settings.
    ///
    /// ```
    /// use http_body_util::Full;
    /// use hyper_util::client::legacy::Client;
    /// use hyper_util::rt::TokioExecutor;
    /// use reattempt::RetryLayer;
    /// use reattempt::fallback::FallbackLayer;
    /// use tower::ServiceBuilder;
    ///
    /// let client = Client::builder(TokioExecutor::new()).build_http();
    /// let mirror = ServiceBuilder::new()
    ///     .map_request(|mut request: http::Request<Full<bytes::Bytes>>| {
    ///         *request.uri_mut() = http::Uri::from_static("http://mirror.example/");
    ///         request
    ///     })
    ///     .layer(RetryLayer::http())
    ///     .service(client.clone());
    /// let client = ServiceBuilder::new()
    ///     .layer(FallbackLayer::backup(mirror))
    ///     .layer(RetryLayer::http())
    ///     .service(client);
    /// # reattempt::check::<http::Request<Full<bytes::Bytes>>, _>(&client);
    /// ```
    pub fn backup(service: S) -> Self {
        Self::with(Http::new(), Backup::new(service))
    }
}

/// The HTTP settings that affect fallbacks.
impl<F> FallbackLayer<F, Http> {
    protocol_setters!(Http: reading, http, proving, repeating);
}

impl<F, P: RequestProtocol> FallbackLayer<F, P> {
    /// Creates a layer with a custom protocol value, whose classification decides which outcomes are failures. `source`
    /// is a function that takes the [`Failed`] outcome, or a [`Backup`].
    pub fn with(protocol: P, source: F) -> Self {
        let source = Arc::new(source);
        Self { shared: Shared { protocol, source, on_permanent: false, observer: None } }
    }

    /// Changes the protocol's settings, such as its classification.
    pub fn protocol(self, change: impl FnOnce(P) -> P) -> Self {
        let protocol = change(self.shared.protocol);
        Self { shared: Shared { protocol, ..self.shared } }
    }

    /// Sets whether permanent failures, such as a 404, are replaced too. Default: `false`, because the caller caused
    /// such a failure.
    pub fn on_permanent(mut self, on: bool) -> Self {
        self.shared.on_permanent = on;
        self
    }

    /// Adds a closure as an observer; [`observe_with`](Self::observe_with) adds any other observer.
    pub fn observe<O: Fn(&str, &Event<'_>) + Send + Sync + 'static>(self, observer: O) -> Self {
        self.observe_with(observer)
    }

    /// Notifies an [`Observer`](reattempt_engine::observe::Observer) of each replaced outcome, after earlier observers.
    pub fn observe_with(mut self, observer: impl Observer + 'static) -> Self {
        add_observer(&mut self.shared.observer, observer);
        self
    }
}

impl<S, F, P: Clone> Layer<S> for FallbackLayer<F, P> {
    type Service = Fallback<S, F, P>;

    fn layer(&self, inner: S) -> Self::Service {
        Fallback::new(Arc::new(self.shared.clone()), inner)
    }
}

impl<F, P: Clone> Clone for FallbackLayer<F, P> {
    fn clone(&self) -> Self {
        Self { shared: self.shared.clone() }
    }
}

impl<F, P: fmt::Debug> fmt::Debug for FallbackLayer<F, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FallbackLayer")
            .field("protocol", &self.shared.protocol)
            .field("on_permanent", &self.shared.on_permanent)
            .finish_non_exhaustive()
    }
}
