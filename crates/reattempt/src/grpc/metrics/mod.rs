//! Metrics of gRPC calls and of their attempts.
//!
//! [`GrpcMetrics`] makes two layers, one above the retry layer for calls and one below it for attempts. They
//! record the instruments that gRPC has named for this (A66, A96; rules OBS-2, OBS-4). An extension of the request
//! joins the two. [`RetryMetric`] names the instruments that must be switched on.

mod body;
mod call;
mod counted;
mod instruments;
mod messages;
mod service;
mod span;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use opentelemetry::metrics::MeterProvider;
use tower_layer::Stack;

use crate::error_mode::{BoxedError, OwnError};
use instruments::Instruments;

pub use body::MeasuredBody;
pub(crate) use call::mark;
pub use instruments::RetryMetric;
pub use service::{GrpcMetricsLayer, Measured, ResponseFuture};

/// Measures the calls of a gRPC channel and each of their attempts, by OpenTelemetry.
///
/// | instrument | unit | labels | measured |
/// |---|---|---|---|
/// | `grpc.client.attempt.started` (a counter) | `{attempt}` | method, target | as an attempt begins |
/// | `grpc.client.attempt.duration` | `s` | method, target, status | as it ends |
/// | `grpc.client.attempt.sent_total_compressed_message_size` | `By` | method, target, status | as it ends |
/// | `grpc.client.attempt.rcvd_total_compressed_message_size` | `By` | method, target, status | as it ends |
/// | `grpc.client.call.duration` | `s` | method, target, status | as the call ends |
/// | those of [`RetryMetric`] | | method, target | as the call ends, if [switched on](Self::enable) |
///
/// All but the first are histograms, whose bounds gRPC has set (rule OBS-3). The labels are:
///
/// - **`grpc.method`**: "package.Service/Method" where a generated client has put it among the request's
///   extensions; "other" for every other request, unless [`generic_methods`](Self::generic_methods) lets
///   its name through.
/// - **`grpc.target`**: as it was given to [`new`](Self::new).
/// - **`grpc.status`**: the name of the code, "OK" or "DEADLINE_EXCEEDED". It is the one in the trailers, or
///   in the head of a response that is nothing else. A response that is not gRPC has the code of its HTTP
///   status (rule OUT-1), one without any status is UNKNOWN (ST-3), a stream that was reset has the code
///   of the reset, a time limit that ran out below DEADLINE_EXCEEDED, and any other lost or failed
///   connection UNAVAILABLE, whatever a client makes of the error later. What is dropped before its end
///   is CANCELLED, and so are hedges that have lost (OBS-6); if the call's deadline has passed by then, it is DEADLINE_EXCEEDED.
///
/// An attempt begins when its service is called and ends when its status is known, so with a streamed answer
/// at the end of its body. Sizes are those of the messages as they are sent, compressed if they are, without
/// the five bytes before each and without anything of the transport. Time is tokio's.
///
/// The instruments belong to a meter of the name `reattempt`. Nothing falls back on a global provider;
/// `opentelemetry::global::meter_provider()` can be given here like any other.
///
/// # Cost
/// A call that is measured allocates its labels, a place to count and an extension of its request; each
/// attempt a count of what it sends and a box around its body. A client without metrics pays nothing,
/// with the feature or without.
///
/// ```
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use reattempt::RetryLayer;
/// use reattempt::grpc::metrics::{GrpcMetrics, RetryMetric};
/// use tonic::transport::Endpoint;
/// use tower::ServiceBuilder;
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # let _entered = runtime.enter();
/// let provider = SdkMeterProvider::builder().build();
/// let metrics = GrpcMetrics::new(&provider, "dns:///stock.example:443")
///     .enable([RetryMetric::Retries, RetryMetric::RetryDelay]);
///
/// let channel = Endpoint::from_static("http://stock.example:443").connect_lazy();
/// let client = ServiceBuilder::new()
///     .layer(metrics.around(RetryLayer::grpc()))
///     .service(channel);
/// // … `StockClient::new(client)`
/// ```
pub struct GrpcMetrics<M = OwnError> {
    instruments: Arc<Instruments>,
    mode: PhantomData<fn() -> M>,
}

impl GrpcMetrics {
    /// The stable instruments, made by `provider`, for a channel to `target`.
    ///
    /// The target is the URI that the channel was made for, with its scheme: "dns:///stock.example:443". It is
    /// a label as it stands, so keep addresses that come and go out of it.
    pub fn new(provider: &dyn MeterProvider, target: impl Into<Arc<str>>) -> Self {
        let instruments = Arc::new(Instruments::new(provider, target.into()));
        Self { instruments, mode: PhantomData }
    }

    /// For services whose error is a `BoxError`, as behind tower's `Timeout` or `Buffer`; and around policies
    /// with [`boxed_errors`](crate::RetryPolicy::boxed_errors).
    pub fn boxed_errors(self) -> GrpcMetrics<BoxedError> {
        GrpcMetrics { instruments: self.instruments, mode: PhantomData }
    }
}

impl<M> GrpcMetrics<M> {
    /// Switches on the metrics of retries, which gRPC still calls experimental. Default: none.
    pub fn enable(mut self, metrics: impl IntoIterator<Item = RetryMetric>) -> Self {
        let instruments = Arc::make_mut(&mut self.instruments);
        metrics.into_iter().for_each(|metric| instruments.enable(metric));
        self
    }

    /// The methods ("package.Service/Method") that are recorded by their names though no generated client
    /// has named them. Default: none, for whoever makes up such names would make a time series of each.
    pub fn generic_methods(
        mut self,
        recorded: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Self {
        Arc::make_mut(&mut self.instruments).generic_methods = Some(Arc::new(recorded));
        self
    }

    /// Puts `layer` between a measurement of calls, outside, and one of attempts, inside.
    ///
    /// The layer is what makes attempts of calls: a [`RetryLayer`](crate::RetryLayer), a
    /// [`HedgeLayer`](crate::hedge::HedgeLayer), a [`ServiceConfigLayer`](crate::grpc::service_config::ServiceConfigLayer), or a
    /// `ServiceBuilder` with more than one of them. Metrics go around metrics: each of two providers gets
    /// its own measurements.
    pub fn around<L>(&self, layer: L) -> Stack<Stack<GrpcMetricsLayer<M>, L>, GrpcMetricsLayer<M>> {
        let attempts = GrpcMetricsLayer::of_attempts(self.clone());
        Stack::new(Stack::new(attempts, layer), GrpcMetricsLayer::of_calls(self.clone()))
    }
}

impl<M> Clone for GrpcMetrics<M> {
    fn clone(&self) -> Self {
        Self { instruments: Arc::clone(&self.instruments), mode: PhantomData }
    }
}

impl<M> fmt::Debug for GrpcMetrics<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcMetrics")
            .field("target", &self.instruments.target)
            .finish_non_exhaustive()
    }
}
