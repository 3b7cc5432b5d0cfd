//! The standard stack for several servers.

use reattempt_control::{Bulkhead, CircuitBreaker};
use reattempt_endpoints::{BaseUrl, Directed, Endpoints, EndpointsHandle, EndpointsLayer, Urls};
use reattempt_engine::protocol::RequestProtocol;
use reattempt_guard::{GuardLayer, Guarded};
use tower_layer::Layer;

use super::{AttemptPolicy, StandardGuards, StandardLayer};

/// The layers inside the breaker of a standard stack with several servers: the endpoints, and each endpoint's limit on
/// calls in flight.
#[derive(Debug, Clone)]
pub struct StandardEndpoints<P: RequestProtocol, Mode> {
    endpoints: EndpointsLayer<P, Mode>,
    bulkhead: GuardLayer<Bulkhead, P, Mode>,
}

impl<S, P: RequestProtocol + Clone, Mode> Layer<S> for StandardEndpoints<P, Mode> {
    type Service = Directed<Guarded<S, Bulkhead, P, Mode>, P, Mode>;

    fn layer(&self, inner: S) -> Self::Service {
        self.endpoints.layer(self.bulkhead.layer(inner))
    }
}

impl<Policy: AttemptPolicy, O> StandardLayer<StandardGuards, Policy, O> {
    /// Sends each attempt to one of several base URLs through one client.
    ///
    /// Retries and hedges go to an endpoint that the call has not tried ([`endpoints`](reattempt_endpoints)). The
    /// breaker and the time limits still cover all endpoints together. The limit on calls in flight applies to each
    /// endpoint: 64 by default, or the one from [`limits`](Self::limits). If an endpoint has no place left, a retried
    /// or hedged call's attempt goes to another one immediately. The limit's key is the destination of the rewritten
    /// request, so a custom [`destination`](crate::Http::destination) function must return a different value for each
    /// endpoint.
    ///
    /// The default breaker then ignores consecutive failures. Otherwise, it would refuse all calls if one endpoint
    /// failed 20 calls in a row. The default breaker opens if half of the attempts across all endpoints fail. On a
    /// custom breaker, set [`consecutive_failures(0)`](CircuitBreaker::consecutive_failures).
    ///
    /// The endpoints classify outcomes with the policy's protocol. Call this after [`retry`](StandardLayer::retry),
    /// [`hedge`](StandardLayer::hedge) and [`limits`](Self::limits). Address requests to the first base URL in the
    /// list, or to the one set with [`base`](Endpoints::base).
    ///
    /// ```
    /// use std::convert::Infallible;
    /// use std::io;
    /// use bytes::Bytes;
    /// use http::{Request, Response};
    /// use http_body_util::Full;
    /// use reattempt::ReplayBody;
    /// use reattempt::endpoints::Endpoints;
    /// use reattempt::standard::StandardLayer;
    /// use tower::{Layer, service_fn};
    ///
    /// # #[tokio::main(flavor = "current_thread", start_paused = true)]
    /// # async fn main() -> Result<(), tower::BoxError> {
    /// // Nothing listens at the first address.
    /// let network = service_fn(|request: Request<ReplayBody<Full<Bytes>>>| async move {
    ///     match request.uri().host() {
    ///         Some("eu.example") => Err(io::Error::from(io::ErrorKind::ConnectionRefused)),
    ///         _ => Ok(Response::new(Full::<Bytes>::from("hello"))),
    ///     }
    /// });
    ///
    /// let servers = Endpoints::urls(["http://eu.example/api", "http://us.example/api"])?;
    /// let layer = StandardLayer::http().endpoints(servers);
    /// let endpoints = layer.endpoints_handle();
    /// let client = layer.layer(network);
    /// for _ in 0..100 {
    ///     let request = Request::post("http://eu.example/api/orders").body(Full::from("1 chair"))?;
    ///     client.send(request).await?;
    /// }
    /// assert!(endpoints.view()[0].failing > 0.0, "it failed, and no call did");
    /// # Ok(())
    /// # }
    /// ```
    pub fn endpoints(
        self,
        endpoints: Endpoints<Urls>,
    ) -> StandardLayer<CircuitBreaker, Policy, O, StandardEndpoints<Policy::Protocol, Policy::Errors>> {
        let Self { policy, guards, mut times, outer, .. } = self;
        times.endpoint = endpoints.get_attempt_timeout();
        let (mut breaker, bulkhead) = guards.guard().clone();
        if times.breaker_is_default {
            // If one endpoint fails, all its calls in flight may fail consecutively, although the service works.
            breaker = breaker.consecutive_failures(0);
        }
        let warnings = bulkhead.validate();
        let endpoints = EndpointsLayer::of(policy.shared_protocol(), endpoints);
        let inner_warnings = [endpoints.validate(), warnings].concat();
        let bulkhead = GuardLayer::of(policy.shared_protocol(), bulkhead);
        let inner = StandardEndpoints { endpoints, bulkhead };
        StandardLayer { guards: guards.with_guard(breaker), policy, times, outer, inner, inner_warnings }
    }
}

impl<G, Policy: AttemptPolicy, O> StandardLayer<G, Policy, O, StandardEndpoints<Policy::Protocol, Policy::Errors>> {
    /// Returns a handle that reads, changes and observes the [`endpoints`](StandardLayer::endpoints).
    pub fn endpoints_handle(&self) -> EndpointsHandle<BaseUrl> {
        self.inner.endpoints.endpoints()
    }
}
