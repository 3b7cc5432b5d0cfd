//! Metrics of gRPC calls and their attempts.
//!
//! [`GrpcMetrics`] creates two layers: one outside the retry layer for calls, and one inside it for attempts. They
//! record the instruments that gRPC defines in its proposals A66 and A96. A request extension connects
//! the two layers. [`RetryMetric`] lists the instruments that are off by default.

// OBS-2, OBS-4

mod body;
mod call;
mod instruments;
mod messages;
mod sent;
mod service;
mod span;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use opentelemetry::metrics::MeterProvider;
use reattempt_engine::error::{BoxedError, OwnError};
use tower_layer::Stack;

use crate::MeasuringLayer;
use crate::layer::around;
use instruments::GrpcInstruments;

pub use body::{MeasuredBody, MeasuredEnd};
pub use instruments::RetryMetric;
pub use service::ResponseFuture;

/// A set of OpenTelemetry instruments for the calls and attempts on a gRPC channel.
///
/// | instrument | unit | labels | recorded |
/// |---|---|---|---|
/// | `grpc.client.attempt.started` (a counter) | `{attempt}` | method, target | when an attempt starts |
/// | `grpc.client.attempt.duration` | `s` | method, target, status | when it ends |
/// | `grpc.client.attempt.sent_total_compressed_message_size` | `By` | method, target, status | when it ends |
/// | `grpc.client.attempt.rcvd_total_compressed_message_size` | `By` | method, target, status | when it ends |
/// | `grpc.client.call.duration` | `s` | method, target, status | when the call ends |
/// | each [`RetryMetric`] | | method, target | when the call ends, if [enabled](Self::enable) |
///
/// All but the first are histograms with the bucket boundaries that gRPC defines. The labels are:
///
/// - **`grpc.method`**: "package.Service/Method" if a generated client has added it to the request's extensions. For
///   every other request, it is "other", unless [`generic_methods`](Self::generic_methods) selects the method.
/// - **`grpc.target`**: the argument of [`new`](Self::new).
/// - **`grpc.status`**: the name of the code, such as "OK" or "DEADLINE_EXCEEDED".
///
/// | end of a call or an attempt | `grpc.status` |
/// |---|---|
/// | a status in the trailers, or in the head of a response without a body | that status |
/// | a non-gRPC response | the code for its HTTP status |
/// | a response without a status | UNKNOWN |
/// | the stream was reset | the code for the reset reason |
/// | a time limit of the inner client passed | DEADLINE_EXCEEDED |
/// | any other lost or failed connection | UNAVAILABLE |
/// | dropped before its end, such as a losing hedge | CANCELLED, or DEADLINE_EXCEEDED if the call's deadline has passed |
///
/// An attempt starts when its service is called, and ends when its status is known. For a streamed response, that is
/// the end of the body. Message sizes are measured after compression, without the five-byte prefix of each message.
/// Times are measured with tokio's clock.
///
/// The instruments belong to a meter named `reattempt`. To use the global provider, pass
/// `opentelemetry::global::meter_provider()`.
///
/// # Cost
/// Each measured call allocates its labels, a counter and a request extension. Each attempt allocates a counter of sent
/// bytes and a box around its body. A client without metrics has no overhead, even if the feature is enabled.
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
// OBS-3, OUT-1, ST-3, OBS-6
pub struct GrpcMetrics<Mode = OwnError> {
    instruments: Arc<GrpcInstruments>,
    mode: PhantomData<fn() -> Mode>,
}

impl GrpcMetrics {
    /// Creates the stable instruments with `provider`, for a channel to `target`.
    ///
    /// The target is the channel's URI with its scheme: "dns:///stock.example:443". It becomes a label unchanged, so do
    /// not use addresses that change often.
    pub fn new(provider: &dyn MeterProvider, target: impl Into<Arc<str>>) -> Self {
        let instruments = Arc::new(GrpcInstruments::new(provider, target.into()));
        Self { instruments, mode: PhantomData }
    }

    /// Changes the error type that measured services must have to `BoxError`. This is needed around tower's `Timeout`
    /// or `Buffer`, or policies with [`boxed_errors`](reattempt_engine::RetryPolicy::boxed_errors).
    pub fn boxed_errors(self) -> GrpcMetrics<BoxedError> {
        GrpcMetrics { instruments: self.instruments, mode: PhantomData }
    }
}

impl<Mode> GrpcMetrics<Mode> {
    /// Enables retry metrics, which gRPC considers experimental. Default: none.
    pub fn enable(mut self, metrics: impl IntoIterator<Item = RetryMetric>) -> Self {
        let instruments = Arc::make_mut(&mut self.instruments);
        metrics.into_iter().for_each(|metric| instruments.enable(metric));
        self
    }

    /// Sets which methods ("package.Service/Method") are recorded by name for requests that do not come from a
    /// generated client. Default: none, because each name in a request would create a time series.
    pub fn generic_methods(mut self, recorded: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Arc::make_mut(&mut self.instruments).generic_methods = Some(Arc::new(recorded));
        self
    }

    /// Puts `layer` between two measuring layers. The outer one measures calls, and the inner one measures attempts.
    ///
    /// `layer` is a [`RetryLayer`](reattempt_engine::RetryLayer), a
    /// [`HedgeLayer`](reattempt_engine::hedge::HedgeLayer), a
    /// [`ServiceConfigLayer`](reattempt_engine::grpc::service_config::ServiceConfigLayer), or a `ServiceBuilder` with
    /// several of them.
    ///
    /// To record with two providers, pass the result to `around` of another `GrpcMetrics`. Each provider then gets its
    /// own measurements.
    pub fn around<L>(&self, layer: L) -> Stack<Stack<MeasuringLayer<Self>, L>, MeasuringLayer<Self>> {
        around(self, layer)
    }
}

impl<Mode> Clone for GrpcMetrics<Mode> {
    fn clone(&self) -> Self {
        Self { instruments: Arc::clone(&self.instruments), mode: PhantomData }
    }
}

impl<Mode> fmt::Debug for GrpcMetrics<Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GrpcMetrics").field("target", &self.instruments.target).finish_non_exhaustive()
    }
}
