//! Metrics and traces of HTTP calls and their attempts, named according to OpenTelemetry's conventions for HTTP
//! clients.
//!
//! [`HttpTelemetry`] creates two layers: one outside the retry layer for calls, and one inside it for attempts. The
//! measurements end with the response head, so the types of requests and responses stay the same.
//!
//! Clients without these layers have no overhead.

#![cfg(all(feature = "http", any(feature = "opentelemetry", feature = "tracing")))]
#![forbid(unsafe_code)]
#![cfg_attr(not(feature = "opentelemetry"), allow(dead_code, reason = "only its outputs read everything"))]
#![warn(unnameable_types)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod call;
#[cfg(all(feature = "opentelemetry", feature = "tonic"))]
#[doc(hidden)] // its path is `reattempt::grpc::metrics`
pub mod grpc;
mod labels;
pub(crate) mod layer;
mod output;
mod record;
mod service;

#[cfg(feature = "opentelemetry")]
mod budget;
#[cfg(feature = "opentelemetry")]
mod instruments;
#[cfg(feature = "opentelemetry")]
mod otel_spans;
#[cfg(feature = "tracing")]
mod tracing_spans;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use tower_layer::Stack;

use labels::Servers;
use output::Output;
use reattempt_engine::error::{BoxedError, OwnError};
use reattempt_engine::observe::{Event, Observer};

#[cfg(feature = "opentelemetry")]
#[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
pub use budget::BudgetMetrics;
#[doc(hidden)]
pub use labels::ResponseHead;
pub use layer::{Measured, MeasuringLayer};
pub use service::ResponseFuture;

/// The default number of servers that have their own labels.
const SERVERS: usize = 100;

/// The telemetry of an HTTP client: metrics, OpenTelemetry spans and `tracing` spans, each enabled separately.
///
/// `metrics` (feature `opentelemetry`) enables these instruments:
///
/// | instrument | unit | labels | recorded |
/// |---|---|---|---|
/// | `http.client.request.duration` (a histogram) | `s` | method, server, status or error | for each attempt |
/// | `reattempt.http.call.duration` (a histogram) | `s` | method, server, status or error | for each call |
/// | `reattempt.http.call.resends` (a histogram) | `{resend}` | method, server | for a call with more than one attempt |
/// | `reattempt.failures` (a counter) | `{attempt}` | kind | for each failure that a retry might mend, by the [observer](#observer) |
/// | `reattempt.causes` (a counter) | `{cause}` | cause | once for the failures that share a cause, such as a lost connection, by the observer |
/// | `reattempt.retries` (a counter) | `{retry}` | proof, if only that allowed it | for each retry or hedge, by the observer |
/// | `reattempt.replacements` (a counter) | `{attempt}` | proof | for each replacement of an unprocessed attempt, by the observer |
/// | `reattempt.given_up` (a counter) | `{call}` | reason | for each failed call, by the observer |
///
/// OpenTelemetry's conventions define `http.client.request.duration` as the duration of each request that is sent.
/// Whole calls have a separate instrument, because otherwise retried requests would be counted twice.
///
/// `spans` (feature `opentelemetry`) and `tracing` (feature `tracing`) create a span for each call, with a child client
/// span for each attempt. Both are named after the method, or `HTTP` if no RFC defines it.
///
/// | label of metrics, attribute of spans | value |
/// |---|---|
/// | `http.request.method` | the method, or `_OTHER` if no RFC defines it |
/// | `server.address`, `server.port` | from the request's URI; with several [base URLs][endpoints], from the chosen endpoint |
/// | `http.response.status_code` | the status, if there was a response |
/// | `network.protocol.version` | `1.1` or `2`, if there was a response |
/// | `error.type` | a status of 400 or above; `timeout`, `connect`, `network` (also for a body that a `PeekBodyLayer` saw break), `refused` (by a guard of this client), `cancelled`, or else `_OTHER` |
/// | `http.request.resend_count` (spans) | the number of earlier attempts of the call; on the span of a call, the number of attempts after the first |
/// | `reattempt.endpoint` (spans) | the name of the [endpoint][endpoints] of an attempt that a retry or hedge layer sent |
/// | `url.full` (spans) | the URL without userinfo and query, which may contain credentials |
///
/// # Cardinality
/// The labels of metrics are bounded, whatever peers or callers send. Methods, errors and reasons come from fixed
/// lists. There are at most 900 statuses (100 to 999). Only the first 100 servers have their own labels, and all others
/// share the address `_OTHER`, as do servers with names of more than 255 bytes. [`max_servers`](Self::max_servers) sets
/// that number. Spans always contain the actual server.
///
/// # Observer
/// This type is also an [`Observer`] that counts retries and failed calls. Pass a clone to
/// [`observe_with`](reattempt_engine::RetryPolicy::observe_with).
///
/// # Cost
/// Each call and each attempt allocates one record per enabled output. A client without these layers has no overhead.
///
/// ```
/// # #[cfg(feature = "opentelemetry")] {
/// use bytes::Bytes;
/// use http::Request;
/// use http_body_util::Full;
/// use hyper_util::client::legacy::Client;
/// use hyper_util::rt::TokioExecutor;
/// use opentelemetry_sdk::metrics::SdkMeterProvider;
/// use reattempt::telemetry::HttpTelemetry;
/// use reattempt::{RetryPolicy, check};
/// use tower::ServiceBuilder;
///
/// let provider = SdkMeterProvider::builder().build();
/// let telemetry = HttpTelemetry::new().metrics(&provider);
/// let retries = RetryPolicy::http().max_attempts(4).observe_with(telemetry.clone());
///
/// let client = ServiceBuilder::new()
///     .layer(telemetry.around(retries))
///     .service(Client::builder(TokioExecutor::new()).build_http());
/// check::<Request<Full<Bytes>>, _>(&client);
/// # }
/// ```
///
/// [endpoints]: https://docs.rs/reattempt/latest/reattempt/endpoints/index.html
pub struct HttpTelemetry<Mode = OwnError> {
    shared: Arc<Shared>,
    mode: PhantomData<fn() -> Mode>,
}

/// The outputs and labels that all layers of one `HttpTelemetry` share.
#[derive(Clone)]
struct Shared {
    outputs: Vec<Arc<dyn Output>>,
    servers: Arc<Servers>,
}

impl HttpTelemetry {
    /// Creates telemetry with no metrics or spans enabled.
    pub fn new() -> Self {
        Self::with(Shared { outputs: Vec::new(), servers: Arc::new(Servers::new(SERVERS)) })
    }

    /// Requires measured services to have the error type `BoxError`, instead of one that implements `Error`. This is
    /// needed around tower's `Timeout` or `Buffer`, the [standard stack][standard], or policies with
    /// [`boxed_errors`](reattempt_engine::RetryPolicy::boxed_errors).
    ///
    /// [standard]: https://docs.rs/reattempt/latest/reattempt/standard/index.html
    pub fn boxed_errors(self) -> HttpTelemetry<BoxedError> {
        HttpTelemetry { shared: self.shared, mode: PhantomData }
    }
}

impl<Mode> HttpTelemetry<Mode> {
    fn with(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), mode: PhantomData }
    }

    /// Sets the number of servers that have their own labels in metrics. All others share the address `_OTHER`.
    /// Default: 100.
    pub fn max_servers(self, most: usize) -> Self {
        let servers = Arc::new(Servers::new(most));
        Self::with(Shared { servers, ..Shared::clone(&self.shared) })
    }

    /// Creates the instruments with `provider`, in a meter named `reattempt`.
    #[cfg(feature = "opentelemetry")]
    #[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
    pub fn metrics(self, provider: &dyn opentelemetry::metrics::MeterProvider) -> Self {
        self.output(instruments::HttpInstruments::new(provider))
    }

    /// Creates spans with `provider`, from a tracer named `reattempt`.
    ///
    /// An attempt's context is current while its service is called and polled. An inner layer that injects the current
    /// context into headers therefore propagates the attempt's span.
    #[cfg(feature = "opentelemetry")]
    #[cfg_attr(docsrs, doc(cfg(feature = "opentelemetry")))]
    pub fn spans<P>(self, provider: &P) -> Self
    where
        P: opentelemetry::trace::TracerProvider,
        P::Tracer: Send + Sync + 'static,
        <P::Tracer as opentelemetry::trace::Tracer>::Span: Send + Sync + 'static,
    {
        self.output(otel_spans::OtelSpans::new(provider))
    }

    /// Creates `tracing` spans with the target `reattempt` and the level INFO: `http.call` and `http.request`.
    ///
    /// The fields are named as in OpenTelemetry's semantic conventions. The additional fields are `otel.name`,
    /// `otel.kind` and `otel.status_code`, which tracing-opentelemetry reads. The events of a policy's
    /// [`TracingObserver`](reattempt_engine::observe::TracingObserver) are recorded inside these spans.
    #[cfg(feature = "tracing")]
    #[cfg_attr(docsrs, doc(cfg(feature = "tracing")))]
    pub fn tracing(self) -> Self {
        self.output(tracing_spans::TracingSpans)
    }

    fn output(self, output: impl Output + 'static) -> Self {
        let mut shared = Shared::clone(&self.shared);
        shared.outputs.push(Arc::new(output));
        Self::with(shared)
    }

    /// Puts `layer` between two measuring layers. The outer one measures calls, and the inner one measures attempts.
    ///
    /// `layer` is a retry policy or layer, a hedge layer, the standard stack, or a `ServiceBuilder` with several of
    /// them. Resends are not counted inside a tower `Buffer`, because it moves attempts to another task.
    pub fn around<L>(&self, layer: L) -> Stack<Stack<MeasuringLayer<Self>, L>, MeasuringLayer<Self>> {
        layer::around(self, layer)
    }
}

/// Counts retries, replacements and failed calls.
impl<Mode> Observer for HttpTelemetry<Mode> {
    fn on_event(&self, _: &str, event: &Event<'_>) {
        self.shared.outputs.iter().for_each(|output| output.on_event(event));
    }
}

impl Default for HttpTelemetry {
    fn default() -> Self {
        Self::new()
    }
}

impl<Mode> Clone for HttpTelemetry<Mode> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared), mode: PhantomData }
    }
}

impl<Mode> fmt::Debug for HttpTelemetry<Mode> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTelemetry").field("outputs", &self.shared.outputs.len()).finish_non_exhaustive()
    }
}
