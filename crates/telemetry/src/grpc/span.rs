//! The measurement of a call or an attempt, from start to end.
//!
//! It counts the bytes sent and received, and records one measurement per instrument when it is dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http::Request;
use reattempt_engine::Deadline;
use reattempt_engine::body::Watched;
use reattempt_engine::wall::clock::Instant;
use reattempt_engine::wall::{AttemptKind, KindWanted};
use reattempt_grpc::Code;
use tonic::body::Body;

use super::call::GrpcCall;
use super::instruments::GrpcInstruments;
use super::messages::Messages;
use super::sent::Sent;

/// A call or an attempt that has started.
pub(super) struct Span {
    call: Arc<GrpcCall>,
    started: Instant,
    deadline: Option<Deadline>,
    of: Of,
    /// The final status, or `None` if the call or attempt was dropped earlier.
    code: Option<Code>,
}

enum Of {
    Call,
    Attempt { sent: Arc<AtomicU64>, received: Messages },
}

impl Span {
    /// Starts a call, and adds it to the extensions of `request`.
    pub(super) fn call(instruments: &Arc<GrpcInstruments>, request: &mut Request<Body>) -> Self {
        let started = Instant::now();
        let call = Arc::new(GrpcCall::new(instruments, request));
        request.extensions_mut().insert(Arc::clone(&call));
        request.extensions_mut().insert(KindWanted);
        Self { started, deadline: call.deadline, call, of: Of::Call, code: None }
    }

    /// Starts an attempt, whose sent bytes are counted.
    pub(super) fn attempt(instruments: &Arc<GrpcInstruments>, attempt: Request<Body>) -> (Self, Request<Body>) {
        let started = Instant::now();
        let call = GrpcCall::of(instruments, &attempt);
        let extensions = attempt.extensions();
        call.attempt_begins(extensions.get::<AttemptKind>().copied(), started);
        // The retry or hedge layer may have set a different deadline.
        let own = Deadline::of(extensions);
        let deadline = own.into_iter().chain(call.deadline).min();
        let sent = Arc::<AtomicU64>::default();
        let attempt = attempt.map(|body| Body::new(Watched::new(body, Sent::new(Arc::clone(&sent)))));
        let of = Of::Attempt { sent, received: Messages::default() };
        (Self { call, started, deadline, of, code: None }, attempt)
    }

    /// Records response bytes.
    pub(super) fn receives(&mut self, data: &[u8]) {
        if let Of::Attempt { received, .. } = &mut self.of {
            received.read(data);
        }
    }

    /// Ends the span with a code.
    pub(super) fn end_with(mut self, code: Code) {
        self.code = Some(code);
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        let now = Instant::now();
        let code = self.code.unwrap_or_else(|| match self.deadline {
            // Another attempt's timer may have ended the call slightly earlier.
            Some(deadline) if deadline.instant().is_due(self.started, now) => Code::DeadlineExceeded,
            _ => Code::Cancelled,
        });
        let seconds = now.saturating_duration_since(self.started).as_secs_f64();
        let instruments = &*self.call.instruments;
        let labels = self.call.labels_with(code);
        match &self.of {
            Of::Call => {
                instruments.call_duration.record(seconds, &labels);
                self.call.ends(code, now);
            }
            Of::Attempt { sent, received } => {
                instruments.attempt_duration.record(seconds, &labels);
                instruments.attempt_sent.record(sent.load(Ordering::Relaxed), &labels);
                instruments.attempt_received.record(received.bytes, &labels);
                self.call.attempt_ends(code, now);
            }
        }
    }
}
