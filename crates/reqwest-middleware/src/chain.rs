//! The rest of a middleware chain as a service that layers can wrap.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use http::Extensions;
use reattempt::CallOptions;
use reattempt::Retry;
use reattempt::fallback::Fallback;
use reattempt::guard::Guarded;
use reattempt::hedge::Hedge;
use reattempt::policies::PolicyClient;
use reattempt::protocol::RequestProtocol;
use reattempt::standard::Standard;
#[cfg(any(feature = "opentelemetry", feature = "tracing"))]
use reattempt::telemetry::Measured;
use reqwest::{Request, Response};
use tower_layer::Layer;
use tower_service::Service;

use super::api::Next;
use super::error::{BoxError, ChainError};

type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The rest of the chain for one call, as a service: the later middlewares and the client.
///
/// Each attempt gets a clone of the call's extensions.
#[derive(Clone)]
pub struct ChainService<'a> {
    pub(crate) next: Next<'a>,
    pub(crate) extensions: Extensions,
    pub(crate) last: LastExtensions,
}

/// The extensions of the attempt that ended last.
#[derive(Debug, Clone, Default)]
pub(crate) struct LastExtensions(Arc<Mutex<Option<Extensions>>>);

impl LastExtensions {
    fn set(&self, extensions: Extensions) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(extensions);
    }

    pub(crate) fn take(&self) -> Option<Extensions> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl<'a> Service<Request> for ChainService<'a> {
    type Response = Response;
    type Error = ChainError;
    type Future = BoxFuture<'a, Result<Response, ChainError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ChainError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, attempt: Request) -> Self::Future {
        let Self { next, mut extensions, last } = self.clone();
        Box::pin(async move {
            let outcome = next.run(attempt, &mut extensions).await;
            last.set(extensions);
            outcome.map_err(ChainError::from)
        })
    }
}

impl fmt::Debug for ChainService<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChainService").finish_non_exhaustive()
    }
}

/// A client that accepts the options of one call. This trait is sealed.
///
/// The outermost layer of a stack creates such a client: a retry layer, a hedge layer, the standard stack, a [table of
/// policies](reattempt::policies), or the telemetry around one of them. A guard or a fallback alone has no options. To
/// put a guard outside the retries, use two middlewares: the first with the guard, the second with the retries.
#[diagnostic::on_unimplemented(
    message = "the outermost layer of a `ReattemptMiddleware` must retry or hedge",
    note = "put a guard, a fallback or another layer that is outside of the retries into a middleware of its own"
)]
pub trait WithOptions: sealed::Sealed {
    #[doc(hidden)]
    fn with_options_of_call(self, options: CallOptions) -> Self;
}

impl<S: Clone, P: Clone> WithOptions for Retry<S, P> {
    fn with_options_of_call(self, options: CallOptions) -> Self {
        self.with_options(options)
    }
}

impl<S: Clone, P: Clone> WithOptions for Hedge<S, P> {
    fn with_options_of_call(self, options: CallOptions) -> Self {
        self.with_options(options)
    }
}

impl<S: Clone, P: Clone> WithOptions for Standard<Retry<S, P>> {
    fn with_options_of_call(self, options: CallOptions) -> Self {
        self.with_options(options)
    }
}

impl<S: Clone, P: Clone> WithOptions for Standard<Hedge<S, P>> {
    fn with_options_of_call(self, options: CallOptions) -> Self {
        self.with_options(options)
    }
}

impl<S: Clone, P: RequestProtocol + Clone> WithOptions for PolicyClient<S, P> {
    fn with_options_of_call(self, options: CallOptions) -> Self {
        self.with_options(options)
    }
}

#[cfg(any(feature = "opentelemetry", feature = "tracing"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "opentelemetry", feature = "tracing"))))]
impl<S: WithOptions + Clone, T> WithOptions for Measured<S, T> {
    fn with_options_of_call(mut self, options: CallOptions) -> Self {
        *self.get_mut() = self.get_ref().clone().with_options_of_call(options);
        self
    }
}

/// Inner middlewares find the options in the extensions.
impl<G, P: RequestProtocol, Mode> WithOptions for Guarded<ChainService<'_>, G, P, Mode> {
    fn with_options_of_call(self, _: CallOptions) -> Self {
        self
    }
}

/// Inner middlewares find the options in the extensions.
impl<F, P> WithOptions for Fallback<ChainService<'_>, F, P> {
    fn with_options_of_call(self, _: CallOptions) -> Self {
        self
    }
}

/// A layer or a stack of layers around the rest of a chain. This trait is implemented for every layer whose services
/// are clients [with options](WithOptions).
pub trait ChainLayer<'a> {
    #[doc(hidden)]
    fn send(
        &self,
        chain: ChainService<'a>,
        request: Request,
        options: CallOptions,
    ) -> BoxFuture<'a, Result<Response, BoxError>>;
}

impl<'a, L> ChainLayer<'a> for L
where
    L: Layer<ChainService<'a>>,
    L::Service: WithOptions + Service<Request, Response = Response> + Send + 'a,
    <L::Service as Service<Request>>::Error: Into<BoxError>,
    <L::Service as Service<Request>>::Future: Send,
{
    fn send(
        &self,
        chain: ChainService<'a>,
        request: Request,
        options: CallOptions,
    ) -> BoxFuture<'a, Result<Response, BoxError>> {
        send(self.layer(chain).with_options_of_call(options), request)
    }
}

/// Sends the request through the call's own client. This is a separate function, because the compiler cannot prove
/// `Send` for a future that names the chain's lifetime.
fn send<'a, S>(mut client: S, request: Request) -> BoxFuture<'a, Result<Response, BoxError>>
where
    S: Service<Request, Response = Response, Error: Into<BoxError>, Future: Send> + Send + 'a,
{
    Box::pin(async move {
        poll_fn(|cx| client.poll_ready(cx)).await.map_err(Into::into)?;
        client.call(request).await.map_err(Into::into)
    })
}

mod sealed {
    #[cfg(any(feature = "opentelemetry", feature = "tracing"))]
    use super::Measured;
    use super::{Fallback, Guarded, Hedge, PolicyClient, RequestProtocol, Retry, Standard};

    #[expect(unnameable_types, reason = "no other crate implements `WithOptions`")]
    pub trait Sealed {}

    impl<S, P> Sealed for Retry<S, P> {}
    impl<S, P> Sealed for Hedge<S, P> {}
    impl<R> Sealed for Standard<R> {}
    impl<S, P: RequestProtocol> Sealed for PolicyClient<S, P> {}
    #[cfg(any(feature = "opentelemetry", feature = "tracing"))]
    impl<S: Sealed, T> Sealed for Measured<S, T> {}
    impl<S, G, P: RequestProtocol, Mode> Sealed for Guarded<S, G, P, Mode> {}
    impl<S, F, P> Sealed for Fallback<S, F, P> {}
}
