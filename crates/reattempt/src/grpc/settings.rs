//! Setters of [`Grpc`].

use std::time::Duration;

use reattempt_core::Verdict;
use reattempt_grpc::Code;

use super::Grpc;
use crate::protocol::{Http, message_setters};

impl Grpc {
    /// Creates the protocol with every default: up to 256 KiB of each request are kept.
    pub fn new() -> Self {
        Self::default()
    }

    message_setters!(messages);

    /// Gives one gRPC code a verdict of its own, in place of the table's.
    ///
    /// ```
    /// use reattempt::{Grpc, RetryPolicy, Verdict};
    /// use reattempt::grpc::GrpcCode;
    /// use reattempt::schedule::{Failure, FailureKind};
    ///
    /// // Optimistic transactions that may simply be tried again.
    /// let failure = Failure::new(FailureKind::Server).with_code(GrpcCode::Aborted.number());
    /// let grpc = Grpc::new().on_code(GrpcCode::Aborted, Verdict::Unprocessed(failure));
    /// let policy = RetryPolicy::with(grpc);
    /// ```
    #[must_use]
    pub fn on_code(mut self, code: Code, verdict: Verdict) -> Self {
        self.set_code(code, verdict);
        self
    }

    /// Sets if an attempt that the server's application never saw is replaced at once (rules TR-1 to TR-9).
    /// On by default.
    ///
    /// Such an attempt was refused by REFUSED_STREAM or GOAWAY, or was never handed to its connection; each
    /// kind is replaced once for a call. A replacement is no retry: it counts for no limit, costs the budget
    /// nothing, and is also sent where [`max_attempts`](crate::RetryPolicy::max_attempts) is 1.
    ///
    /// These are the two switches of rule TR-8: `max_attempts(1)` turns the retries off, this the
    /// replacements. [`CallOptions::never_retry`](crate::CallOptions::never_retry) turns off both for a call.
    /// Replaced or not, such an attempt is also one that is retried like any other refusal.
    #[must_use]
    pub fn transparent_retries(mut self, replaced: bool) -> Self {
        self.replaces = replaced;
        self
    }

    /// Sets if a `google.rpc.RetryInfo` among the details of a status is read (rule RI-4). Off by default.
    ///
    /// The delay in it is a minimum for a failure that is retried anyway, or for the next hedge: the
    /// schedule's counts where it is longer. Pushback wins over it, and
    /// [`max_server_delay`](crate::RetryPolicy::max_server_delay) bounds it.
    #[must_use]
    pub fn retry_info(mut self, read: bool) -> Self {
        self.retry_info = read;
        self
    }

    /// Sets the most time for a whole call, with all its attempts, its waits and the reading of its answer,
    /// where neither the call nor its caller sets less (rule DL-1). None by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn messages(&mut self) -> &mut Http {
        &mut self.http
    }
}
