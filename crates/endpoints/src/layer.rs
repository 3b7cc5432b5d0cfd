//! The layer that sends requests to one of several base URLs through one client.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use http::uri::Scheme;
use reattempt_core::Warning;
use reattempt_core::guard::Guard;
use reattempt_engine::Http;
use reattempt_engine::error::BoxedError;
use reattempt_engine::protocol::RequestProtocol;
use reattempt_guard::wall::Shared;
use tower_layer::Layer;

use super::base_url::{BaseUrl, BaseUrls};
use super::directed::Directed;
use super::guard::EndpointGuard;
use super::handle::{EndpointsHandle, replace_urls};
use super::place::{Keyed, Placing};
use super::{Endpoints, EndpointsError, ForeignHosts};

/// The servers' base URLs in tiers, and the base URL that requests contain.
#[derive(Debug)]
pub struct Urls {
    tiers: Vec<(usize, BaseUrl)>,
    base: BaseUrl,
    placing: Placing<BaseUrl>,
}

impl Keyed for Urls {
    type Key = BaseUrl;

    fn placing(&mut self) -> &mut Placing<BaseUrl> {
        &mut self.placing
    }
}

impl Endpoints<Urls> {
    /// Lists the servers' base URLs, in the form `https://host:port/prefix`, for one client.
    ///
    /// # Errors
    /// Returns an error for an empty list, a duplicate URL, or URLs with different schemes. Each URL must have a host,
    /// and must not contain a query, a fragment, a user name or `..`.
    pub fn urls(urls: impl BaseUrls) -> Result<Self, EndpointsError> {
        let urls = BaseUrl::read_all(urls)?;
        let base = urls.first().cloned().ok_or_else(EndpointsError::empty)?;
        let tiers = urls.into_iter().map(|url| (0, url)).collect();
        Ok(Self::of(Urls { tiers, base, placing: Placing::default() }))
    }

    /// Adds a tier of servers. An attempt is sent to it if the call has tried every server that is in service in
    /// earlier tiers. If more than half of an earlier tier is out of service, the new tier also gets the calls for
    /// those servers until they return.
    ///
    /// # Errors
    /// Returns the same errors as [`urls`](Self::urls), also if a URL is a duplicate of one in an earlier tier.
    pub fn or_else_urls(mut self, urls: impl BaseUrls) -> Result<Self, EndpointsError> {
        let mut later = urls.texts().peekable();
        if later.peek().is_none() {
            return Err(EndpointsError::empty());
        }
        let tiers = &mut self.source.tiers;
        let (before, tier) = (tiers.len(), tiers.last().map_or(0, |(tier, _)| tier + 1));
        let texts = tiers.iter().map(|(_, url)| url.to_string());
        let texts = texts.chain(later.map(|url| url.as_ref().to_owned()));
        let all = BaseUrl::read_all(texts.collect::<Vec<_>>())?;
        tiers.extend(all.into_iter().skip(before).map(|url| (tier, url)));
        Ok(self)
    }

    /// Sets the base URL that requests contain, which is replaced with an endpoint's base URL. Default: the first URL.
    ///
    /// # Errors
    /// Returns an error for an invalid base URL, like [`urls`](Self::urls). An `https` base URL with `http` servers is
    /// also an error, because requests would be sent in clear text.
    pub fn base(mut self, url: &str) -> Result<Self, EndpointsError> {
        let base = BaseUrl::read(url)?;
        if base.scheme == Scheme::HTTPS && self.source.tiers.iter().any(|(_, server)| server.scheme == Scheme::HTTP) {
            return Err(EndpointsError::new(url, "is for https, but the servers are not (https for all, or http)"));
        }
        self.source.base = base;
        Ok(self)
    }

    /// Sets the treatment of requests with another base URL. Default: they pass.
    ///
    /// In a gateway, use [`Refuse`](ForeignHosts::Refuse), or [`Base`](ForeignHosts::Base) if callers use HTTP/2.
    pub fn foreign_hosts(mut self, foreign: ForeignHosts) -> Self {
        self.settings.foreign = foreign;
        self
    }
}

/// A layer that sends each attempt to one of several servers through one client.
///
/// Requests contain one base URL, by default the first of the list. The layer replaces it with that of the picked
/// endpoint: scheme, host, port and prefix. An explicit `Host` header is kept. A request with another base URL, for
/// example after a redirect to another host, is not changed, unless [`Endpoints::foreign_hosts`] says otherwise. If a
/// request has only a path, the path is appended to the endpoint's base URL. A new path is allocated only if an
/// endpoint's prefix differs from the requests'. A path with a segment `..` does not leave a prefix: it is an error.
///
/// If the base URL is that of a server, a redirect to this server cannot be told from a call, and is sent to any of
/// them. For servers that redirect to their leader, use a [base URL](Endpoints::base) of its own, such as
/// `http://replicas`.
///
/// Clones of the layer and its services share the endpoints.
///
/// ```
/// use reattempt::endpoints::EndpointsLayer;
/// use reattempt::{RetryLayer, RetryPolicy};
/// use tower::ServiceBuilder;
///
/// # fn main() -> Result<(), reattempt::endpoints::EndpointsError> {
/// let layer = EndpointsLayer::http(["https://eu.example/api", "https://us.example/api"])?;
/// let endpoints = layer.endpoints();
/// let builder = ServiceBuilder::new()
///     .layer(RetryLayer::new(RetryPolicy::http().boxed_errors()))
///     .layer(layer);
/// assert_eq!(endpoints.view().len(), 2);
/// # Ok(())
/// # }
/// ```
pub struct EndpointsLayer<P = Http, Mode = BoxedError> {
    pub(super) shared: Shared<EndpointGuard<BaseUrl>, P>,
    pub(super) base: Arc<BaseUrl>,
    mode: PhantomData<fn() -> Mode>,
}

impl EndpointsLayer {
    /// Creates a layer for these base URLs with default settings.
    ///
    /// # Errors
    /// Returns the same errors as [`Endpoints::urls`].
    pub fn http(urls: impl BaseUrls) -> Result<Self, EndpointsError> {
        Ok(Self::with(Http::new(), Endpoints::urls(urls)?))
    }
}

impl<P: RequestProtocol> EndpointsLayer<P, P::Errors> {
    /// Creates a layer with custom settings for the endpoints and the protocol.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt::Http;
    /// use reattempt::endpoints::{Endpoints, EndpointsLayer};
    ///
    /// # fn main() -> Result<(), reattempt::endpoints::EndpointsError> {
    /// let endpoints = Endpoints::urls(["http://one.internal:8080", "http://two.internal:8080"])?
    ///     .or_else_urls(["http://far.internal:8080"])?
    ///     .base("http://orders")?
    ///     .attempt_timeout(Duration::from_secs(2));
    /// let layer = EndpointsLayer::with(Http::new(), endpoints);
    /// # Ok(())
    /// # }
    /// ```
    pub fn with(protocol: P, endpoints: Endpoints<Urls>) -> Self {
        Self::of(protocol, endpoints)
    }
}

impl<P, Mode> EndpointsLayer<P, Mode> {
    /// Creates a layer with the error mode `Mode`.
    #[doc(hidden)]
    pub fn of(protocol: P, endpoints: Endpoints<Urls>) -> Self {
        let Endpoints { source: Urls { tiers, base, placing }, mut settings } = endpoints;
        settings.https_only = base.scheme == Scheme::HTTPS;
        settings.placing = placing;
        let guard = Arc::new(EndpointGuard::new(settings));
        replace_urls(&guard, tiers.into_iter().map(|(tier, url)| (tier.into(), url)));
        let mut shared = Shared::of(protocol, guard);
        shared.attempt_timeout = shared.guard.settings.attempt_timeout;
        Self { shared, base: Arc::new(base), mode: PhantomData }
    }

    /// Returns a handle to the endpoints.
    pub fn endpoints(&self) -> EndpointsHandle<BaseUrl> {
        EndpointsHandle::new(&self.shared.guard)
    }

    /// Returns the state that services share: the endpoints with their settings, and the requests' base URL.
    #[doc(hidden)]
    pub fn parts(&self) -> (&Shared<EndpointGuard<BaseUrl>, P>, &Arc<BaseUrl>) {
        (&self.shared, &self.base)
    }

    /// Returns a warning for each unusual setting, for more than 100 endpoints without a subset, and for a random
    /// subset that may leave some without a client.
    pub fn validate(&self) -> Vec<Warning> {
        self.shared.guard.validate()
    }
}

impl<S, P: RequestProtocol + Clone, Mode> Layer<S> for EndpointsLayer<P, Mode> {
    type Service = Directed<S, P, Mode>;

    fn layer(&self, inner: S) -> Self::Service {
        Directed::new(Arc::new(self.shared.clone()), Arc::clone(&self.base), inner)
    }
}

impl<P: Clone, Mode> Clone for EndpointsLayer<P, Mode> {
    fn clone(&self) -> Self {
        let (shared, base) = (self.shared.clone(), Arc::clone(&self.base));
        Self { shared, base, mode: PhantomData }
    }
}

impl<P: fmt::Debug, Mode> fmt::Debug for EndpointsLayer<P, Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EndpointsLayer")
            .field("endpoints", &self.endpoints())
            .field("base", &self.base)
            .field("protocol", &self.shared.protocol)
            .finish()
    }
}
