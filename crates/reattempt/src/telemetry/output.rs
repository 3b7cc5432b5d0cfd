//! The contract of an output: metrics, OpenTelemetry spans or `tracing` spans.

use std::borrow::Cow;
use std::marker::PhantomData;
use std::time::Duration;

#[cfg(any(feature = "opentelemetry", feature = "tracing"))]
use super::labels::OTHER;
use super::labels::Server;
use crate::observe::Event;

/// An output of the telemetry.
pub(super) trait Output: Send + Sync {
    /// Begins a call or an attempt.
    fn begin(&self, begun: &Begun<'_>) -> Box<dyn Open>;

    /// Records an event of a retry policy.
    fn on_event(&self, event: &Event<'_>) {
        let _ = event;
    }
}

/// An output's record of a call or an attempt in flight.
pub(super) trait Open: Send + Sync {
    /// Makes this the output's current call or attempt until the guard is dropped.
    fn enter(&self) -> Entered<'_> {
        Entered::Nothing(PhantomData)
    }

    /// Ends it.
    fn end(&mut self, end: &End);
}

/// A guard of an output, which ends when it is dropped.
#[expect(dead_code, reason = "the guards are only dropped")]
pub(super) enum Entered<'a> {
    Nothing(PhantomData<&'a ()>),
    #[cfg(feature = "opentelemetry")]
    Context(opentelemetry::ContextGuard),
    #[cfg(feature = "tracing")]
    Span(tracing::span::Entered<'a>),
}

/// The subject of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Call,
    Attempt,
}

/// A call or an attempt that begins.
pub(super) struct Begun<'a> {
    pub(super) side: Side,
    /// The method as a label.
    pub(super) method: &'static str,
    /// The server as a label, from a bounded table.
    pub(super) server: &'a Server,
    /// The server itself, for spans; `None` for a request without one.
    pub(super) real_server: Option<&'a Server>,
    /// The URL without user information and query.
    pub(super) url: &'a dyn Fn() -> String,
    /// The number of earlier attempts of the call.
    pub(super) resends: u32,
}

impl Begun<'_> {
    /// Returns the name of a span: the method, or `HTTP` for one that no RFC defines.
    #[cfg(any(feature = "opentelemetry", feature = "tracing"))]
    pub(super) fn span_name(&self) -> &'static str {
        if self.method == OTHER { "HTTP" } else { self.method }
    }
}

/// The end of a call or an attempt.
pub(super) struct End {
    pub(super) after: Duration,
    pub(super) status: Option<u16>,
    pub(super) version: Option<&'static str>,
    pub(super) error: Option<Cow<'static, str>>,
    /// The number of attempts after the first.
    pub(super) resends: u32,
}
