//! Setters of [`Grpc`].

use std::time::Duration;

use reattempt_core::guard::Guard;
use reattempt_core::{Schedule, Verdict};
use reattempt_grpc::Code;

use super::Grpc;
use crate::fallback::FallbackLayer;
use crate::guard::GuardLayer;
use crate::hedge::HedgePolicy;
use crate::policy::RetryPolicy;
use crate::protocol::{Http, forward_setters, message_setters, protocol_setters};

impl Grpc {
    /// Creates the protocol with every default in the table of [`Grpc`].
    pub fn new() -> Self {
        Self::default()
    }

    message_setters!(messages);

    /// Gives one gRPC code a verdict of its own, in place of the table's.
    ///
    /// ```
    /// use reattempt::grpc::Grpc;
    /// use reattempt::{RetryPolicy, Verdict};
    /// use reattempt::grpc::GrpcCode;
    /// use reattempt::schedule::{Failure, FailureKind};
    ///
    /// // A server with optimistic transactions responds ABORTED before anything is changed.
    /// let failure = Failure::new(FailureKind::Server).with_code(GrpcCode::Aborted.number());
    /// let grpc = Grpc::new().on_code(GrpcCode::Aborted, Verdict::NotProcessed(failure));
    /// let policy = RetryPolicy::with(grpc);
    /// ```
    #[must_use]
    pub fn on_code(mut self, code: Code, verdict: Verdict) -> Self {
        self.set_code(code, verdict);
        self
    }

    /// Sets whether an attempt that the server's application never saw is replaced at once. Default `true` (TR-1 to
    /// TR-9).
    ///
    /// Such an attempt was refused by REFUSED_STREAM or GOAWAY, or was never passed to its connection. Each of the two
    /// kinds is replaced once for a call. A replacement is no retry: it counts for no limit, costs the budget nothing,
    /// and is also sent if [`max_attempts`](crate::RetryPolicy::max_attempts) is 1. If no replacement is left, the
    /// attempt is retried like any other refusal.
    ///
    /// `max_attempts(1)` turns the retries off, and this setting the replacements (TR-8).
    /// [`CallOptions::never_retry`](crate::CallOptions::never_retry) turns off both for a call.
    #[doc(alias("replacement", "transparent_retry"))]
    #[must_use]
    pub fn transparent_retries(mut self, replaced: bool) -> Self {
        self.replaces = replaced;
        self
    }

    /// Sets whether a `google.rpc.RetryInfo` among the details of a status is read. Default `false` (RI-4).
    ///
    /// Its delay is a minimum for a failure that is retried anyway, or for the next hedge. If the schedule's delay is
    /// longer, that is used. Pushback has precedence over it, and
    /// [`max_server_delay`](crate::RetryPolicy::max_server_delay) bounds it.
    #[must_use]
    pub fn retry_info(mut self, read: bool) -> Self {
        self.retry_info = read;
        self
    }

    /// Sets the most time for a whole call: all attempts, all waits and the reading of the response. A shorter deadline
    /// of the call has precedence (DL-1). Default: none.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn messages(&mut self) -> &mut Http {
        &mut self.http
    }
}

/// Makes the setters of gRPC alone. A holder has only those that have an effect in it.
macro_rules! grpc_setters {
    ($($group:ident),+) => { $(grpc_setters! { @$group })+ };
    (@codes) => { forward_setters! { Grpc: on_code(code: Code, verdict: Verdict); } };
    (@hints) => { forward_setters! { Grpc: retry_info(read: bool); } };
    (@calls) => {
        forward_setters! { Grpc: transparent_retries(replaced: bool); timeout(timeout: Duration); }
    };
}

/// Settings of the protocol, which [`protocol`](RetryPolicy::protocol) and [`with`](RetryPolicy::with) change too.
///
/// ```
/// use std::time::Duration;
/// use reattempt::{RetryPolicy, Verdict};
/// use reattempt::grpc::GrpcCode;
///
/// let policy = RetryPolicy::grpc()
///     .on_code(GrpcCode::Aborted, Verdict::not_processed())
///     .timeout(Duration::from_secs(2))
///     .max_attempts(4);
/// ```
impl<D: Schedule + Clone, B: Clone, M> RetryPolicy<Grpc, D, B, M> {
    protocol_setters!(Grpc: reading, sending, proving);
    grpc_setters!(codes, hints, calls);
}

/// Settings of the protocol, which [`protocol`](HedgePolicy::protocol) and [`with`](HedgePolicy::with) change too.
impl<B: Clone, M> HedgePolicy<Grpc, B, M> {
    protocol_setters!(Grpc: reading, sending, proving);
    grpc_setters!(codes, hints, calls);
}

/// Settings of gRPC that guards use.
impl<G: Guard, M> GuardLayer<G, Grpc, M> {
    protocol_setters!(Grpc: reading);
    grpc_setters!(codes, hints);
}

/// Settings of gRPC that fallbacks use.
impl<F> FallbackLayer<F, Grpc> {
    protocol_setters!(Grpc: reading, sending, proving);
    grpc_setters!(codes);
}
