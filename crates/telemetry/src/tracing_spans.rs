//! `tracing` spans, with the fields that tracing-opentelemetry reads.

use std::sync::Arc;

use tracing::field::Empty;
use tracing::{Span, info_span};

use super::layer::Side;
use super::output::{Begun, End, EnteredSpan, Open, Output};

/// An output that creates spans in the current subscriber.
pub(super) struct TracingSpans;

/// Creates a span with this name and the fields that calls and attempts share.
macro_rules! span {
    ($name:literal, $kind:literal, $begun:expr) => {
        info_span!(
            target: "reattempt",
            $name,
            otel.name = $begun.span_name(),
            otel.kind = $kind,
            otel.status_code = Empty,
            http.request.method = $begun.method,
            http.request.resend_count = Empty,
            http.response.status_code = Empty,
            network.protocol.version = Empty,
            server.address = $begun.real_server.map(|server| &*server.address),
            server.port = $begun.real_server.and_then(|server| server.port),
            url.full = Empty,
            "error.type" = Empty,
            reattempt.endpoint = Empty,
        )
    };
}

impl Output for TracingSpans {
    fn begin(&self, begun: &Begun<'_>) -> Box<dyn Open> {
        let span = match begun.side {
            Side::Call => span!("http.call", "internal", begun),
            Side::Attempt => span!("http.request", "client", begun),
        };
        if !span.is_disabled() {
            span.record("url.full", (begun.url)());
            resends(&span, begun.resends);
        }
        Box::new(TracingSpan(span))
    }
}

fn resends(span: &Span, count: u32) {
    if count > 0 {
        span.record("http.request.resend_count", count);
    }
}

struct TracingSpan(Span);

impl Open for TracingSpan {
    fn enter(&self) -> EnteredSpan<'_> {
        EnteredSpan::Span(self.0.enter())
    }

    fn endpoint(&mut self, name: &Arc<str>) {
        self.0.record("reattempt.endpoint", &**name);
    }

    fn end(&mut self, end: &End) {
        let span = &self.0;
        resends(span, end.resends);
        if let Some(status) = end.status {
            span.record("http.response.status_code", status);
        }
        if let Some(version) = end.version {
            span.record("network.protocol.version", version);
        }
        if let Some(error) = &end.error {
            span.record("error.type", &**error);
            span.record("otel.status_code", "ERROR");
        }
    }
}
