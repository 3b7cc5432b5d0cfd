//! The trait that every telemetry output implements: metrics, OpenTelemetry spans and `tracing` spans.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use reattempt_engine::observe::Event;

#[cfg(any(feature = "opentelemetry", feature = "tracing"))]
use super::labels::OTHER;
use super::labels::Server;
use super::layer::Side;

/// A destination for telemetry data.
pub(super) trait Output: Send + Sync {
    /// Starts recording a call or an attempt.
    fn begin(&self, begun: &Begun<'_>) -> Box<dyn Open>;

    /// Records an event of a retry policy.
    fn on_event(&self, event: &Event<'_>) {
        let _ = event;
    }
}

/// An output's record of a call or an attempt in flight.
pub(super) trait Open: Send + Sync {
    /// Makes this the output's current call or attempt until the guard is dropped.
    fn enter(&self) -> EnteredSpan<'_> {
        EnteredSpan::Nothing(PhantomData)
    }

    /// Records the name of the endpoint that an attempt was sent to.
    fn endpoint(&mut self, name: &Arc<str>) {
        let _ = name;
    }

    /// Records the end of the call or attempt.
    fn end(&mut self, end: &End);
}

/// A guard that exits the span or context when it is dropped.
#[expect(dead_code, reason = "the guards are only dropped")]
pub(super) enum EnteredSpan<'a> {
    Nothing(PhantomData<&'a ()>),
    #[cfg(feature = "opentelemetry")]
    Context(opentelemetry::ContextGuard),
    #[cfg(feature = "tracing")]
    Span(tracing::span::Entered<'a>),
}

/// The details of a call or an attempt that is starting.
pub(super) struct Begun<'a> {
    pub(super) side: Side,
    /// The method as a label.
    pub(super) method: &'static str,
    /// The server as a metric label, from a bounded table.
    pub(super) server: &'a Server,
    /// The actual server, for spans; `None` if the request has no authority.
    pub(super) real_server: Option<&'a Server>,
    /// The URL without userinfo and query.
    pub(super) url: &'a dyn Fn() -> String,
    /// The number of earlier attempts in the same call.
    pub(super) resends: u32,
}

impl Begun<'_> {
    /// Returns the span name: the method, or `HTTP` if no RFC defines the method.
    #[cfg(any(feature = "opentelemetry", feature = "tracing"))]
    pub(super) fn span_name(&self) -> &'static str {
        if self.method == OTHER { "HTTP" } else { self.method }
    }
}

/// The result of a call or an attempt.
pub(super) struct End {
    pub(super) after: Duration,
    pub(super) status: Option<u16>,
    pub(super) version: Option<&'static str>,
    pub(super) error: Option<Cow<'static, str>>,
    /// The number of attempts after the first.
    pub(super) resends: u32,
}
