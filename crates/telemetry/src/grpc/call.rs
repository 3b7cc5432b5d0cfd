//! The state of a call that both measuring layers share: its labels, and the counts of its attempts.
//!
//! Attempts record their start and their end, on any task. The totals are recorded when the call ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::Request;
use opentelemetry::KeyValue;
use reattempt_engine::Deadline;
use reattempt_engine::wall::AttemptKind;
use reattempt_engine::wall::clock::Instant;
use reattempt_grpc::Code;
use tonic::GrpcMethod;

use super::instruments::GrpcInstruments;

/// A call, which is stored in the extensions of its request and its attempts.
pub(super) struct GrpcCall {
    pub(super) instruments: Arc<GrpcInstruments>,
    /// The labels for the method and the target.
    pub(super) labels: [KeyValue; 2],
    /// The caller's deadline. A timeout in the request's header starts when the call is created.
    pub(super) deadline: Option<Deadline>,
    /// The state of this call in an outer metrics layer.
    outer: Option<Arc<GrpcCall>>,
    tally: Mutex<Tally>,
}

#[derive(Default)]
struct Tally {
    retries: u64,
    transparent_retries: u64,
    hedges: u64,
    /// The number of attempts in flight.
    active: u32,
    /// The time and the code at the end of the last attempt. `None` while an attempt is in flight.
    idle: Option<(Instant, Code)>,
    /// The total time without an attempt in flight, excluding the current pause.
    delay: Duration,
}

impl GrpcCall {
    /// Creates a new call.
    pub(super) fn new<B>(instruments: &Arc<GrpcInstruments>, request: &Request<B>) -> Self {
        let extensions = request.extensions();
        let method = match extensions.get::<GrpcMethod<'static>>() {
            Some(method) => Some(format!("{}/{}", method.service(), method.method()).into()),
            None => {
                let name = request.uri().path().trim_start_matches('/');
                let recorded = instruments.generic_methods.as_ref().is_some_and(|own| own(name));
                recorded.then(|| Arc::<str>::from(name))
            }
        };
        let method = method.unwrap_or_else(|| "other".into());
        let own = Deadline::of(extensions);
        Self {
            labels: [
                KeyValue::new("grpc.method", method),
                KeyValue::new("grpc.target", Arc::clone(&instruments.target)),
            ],
            instruments: Arc::clone(instruments),
            deadline: own.into_iter().chain(Deadline::from_headers(request.headers())).min(),
            outer: extensions.get().cloned(),
            tally: Mutex::default(),
        }
    }

    /// Returns the call to which `attempt` belongs, or a new call if its extensions contain none.
    pub(super) fn of<B>(instruments: &Arc<GrpcInstruments>, attempt: &Request<B>) -> Arc<Self> {
        let mut call = attempt.extensions().get::<Arc<Self>>();
        while let Some(other) = call.filter(|call| !Arc::ptr_eq(&call.instruments, instruments)) {
            call = other.outer.as_ref();
        }
        call.map_or_else(|| Arc::new(Self::new(instruments, attempt)), Arc::clone)
    }

    /// Returns the labels of a call or an attempt that has ended.
    pub(super) fn labels_with(&self, code: Code) -> [KeyValue; 3] {
        let [method, target] = self.labels.clone();
        [method, target, KeyValue::new("grpc.status", code.name())]
    }

    /// Records that an attempt starts. The first one has no kind.
    pub(super) fn attempt_begins(&self, kind: Option<AttemptKind>, now: Instant) {
        self.instruments.attempts_started.add(1, &self.labels);
        self.tally(|tally| {
            match kind {
                None => {}
                Some(AttemptKind::Retry) => tally.retries += 1,
                Some(AttemptKind::Replacement) => tally.transparent_retries += 1,
                Some(AttemptKind::Hedge) => tally.hedges += 1,
            }
            tally.active = tally.active.saturating_add(1);
            if let Some((since, _)) = tally.idle.take() {
                tally.delay += now.saturating_duration_since(since);
            }
        });
    }

    /// Records that an attempt has ended with this code.
    pub(super) fn attempt_ends(&self, code: Code, now: Instant) {
        self.tally(|tally| {
            tally.active = tally.active.saturating_sub(1);
            if tally.active == 0 {
                tally.idle = Some((now, code));
            }
        });
    }

    /// Records that the call has ended.
    pub(super) fn ends(&self, code: Code, now: Instant) {
        let instruments = &*self.instruments;
        self.tally(|tally| {
            if let Some((since, last)) = tally.idle.take()
                && last != code
            {
                // The call ended while it waited for another attempt.
                tally.delay += now.saturating_duration_since(since);
            }
            for (instrument, count) in [
                (&instruments.retries, tally.retries),
                (&instruments.transparent_retries, tally.transparent_retries),
                (&instruments.hedges, tally.hedges),
            ] {
                if let Some(instrument) = instrument
                    && count > 0
                {
                    instrument.record(count, &self.labels);
                }
            }
            if let Some(instrument) = &instruments.retry_delay {
                instrument.record(tally.delay.as_secs_f64(), &self.labels);
            }
        });
    }

    fn tally(&self, change: impl FnOnce(&mut Tally)) {
        change(&mut self.tally.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
