//! OpenTelemetry spans for calls and attempts.

use std::sync::Arc;

use opentelemetry::trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider};
use opentelemetry::{Context, InstrumentationScope, KeyValue};

use super::instruments::{ended, server};
use super::layer::Side;
use super::output::{Begun, End, EnteredSpan, Open, Output};

/// An output that creates spans with an OpenTelemetry tracer.
pub(super) struct OtelSpans<T> {
    tracer: T,
}

impl<T> OtelSpans<T> {
    pub(super) fn new<P: TracerProvider<Tracer = T>>(provider: &P) -> Self {
        let scope = InstrumentationScope::builder("reattempt").with_version(env!("CARGO_PKG_VERSION")).build();
        Self { tracer: provider.tracer_with_scope(scope) }
    }
}

impl<T> Output for OtelSpans<T>
where
    T: Tracer + Send + Sync,
    T::Span: Span + Send + Sync + 'static,
{
    fn begin(&self, begun: &Begun<'_>) -> Box<dyn Open> {
        let kind = match begun.side {
            Side::Call => SpanKind::Internal,
            Side::Attempt => SpanKind::Client,
        };
        let mut attributes =
            vec![KeyValue::new("http.request.method", begun.method), KeyValue::new("url.full", (begun.url)())];
        attributes.extend(begun.real_server.into_iter().flat_map(server));
        attributes.extend(resends(begun.resends));
        let builder = self.tracer.span_builder(begun.span_name()).with_kind(kind).with_attributes(attributes);
        let parent = Context::current();
        let span = self.tracer.build_with_context(builder, &parent);
        Box::new(OtelSpan(parent.with_span(span)))
    }
}

fn resends(count: u32) -> Option<KeyValue> {
    (count > 0).then(|| KeyValue::new("http.request.resend_count", i64::from(count)))
}

/// The OpenTelemetry context that contains the span.
struct OtelSpan(Context);

impl Open for OtelSpan {
    fn enter(&self) -> EnteredSpan<'_> {
        EnteredSpan::Context(self.0.clone().attach())
    }

    fn endpoint(&mut self, name: &Arc<str>) {
        self.0.span().set_attribute(KeyValue::new("reattempt.endpoint", Arc::clone(name)));
    }

    fn end(&mut self, end: &End) {
        let span = self.0.span();
        span.set_attributes(ended(end).chain(resends(end.resends)));
        if end.error.is_some() {
            span.set_status(Status::error(""));
        }
        span.end();
    }
}
