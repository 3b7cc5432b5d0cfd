//! Policies and layers for gRPC: their constructors, and the settings that only gRPC has.

use std::time::Duration;

use reattempt_control::RetryBudget;
use reattempt_core::{Schedule, Verdict};
use reattempt_grpc::Code;
use reattempt_replay::ReplayLimits;
use reattempt_schedule_exponential::Exponential;
use reattempt_schedule_responsive::Responsive;

use super::Grpc;
use crate::{HedgeLayer, HedgePolicy, PaceLayer, RetryLayer, RetryPolicy};

impl RetryPolicy<Grpc> {
    /// Retries of gRPC calls, by the code of a trailers-only response.
    ///
    /// Delays of 100 ms, doubling up to 5 s, ± 20 %; three attempts; no budget unless one is given;
    /// up to 256 KiB of each request kept. What a server's application never saw is replaced at once
    /// ([`transparent_retries`](Self::transparent_retries)).
    ///
    /// A response whose headers are not its end commits the call (rule COM-1); what becomes of it then
    /// its [body](crate::GrpcBody) sees.
    ///
    /// # What is retried
    /// Beside it, what an empty service config retries by a
    /// [`ServiceConfigLayer`](crate::ServiceConfigLayer). "Repeatable" is a call whose
    /// [options](crate::CallOptions::repeatable) declare it so.
    ///
    /// | outcome before any response headers | `grpc()` | an empty service config |
    /// |---|---|---|
    /// | a request that no application has seen: REFUSED_STREAM, a GOAWAY below it, not dispatched | replaced at once, once; then retried | replaced at once, once |
    /// | a connection that was not made | retried | retried |
    /// | UNAVAILABLE or RESOURCE_EXHAUSTED from the server, HTTP status 429 | retried | not retried |
    /// | DEADLINE_EXCEEDED from the server, a time limit below, a lost connection, HTTP status 502, 503 or 504 | retried if repeatable | not retried |
    /// | every other code, an error of an unknown type | not retried | not retried |
    ///
    /// CANCELLED belongs to the caller: a call ends so because its caller has given it up. It is retried
    /// only if [`on_code`](Self::on_code) or a service config lists it.
    ///
    /// # Errors
    /// A connection that is lost is answered UNAVAILABLE, and a time limit below DEADLINE_EXCEEDED. The
    /// message names the cause. A layer around this one judges such an answer like the error: it is no
    /// answer of a server.
    ///
    /// The message of a unary call, and up to two frames of a stream of messages, are encoded when the
    /// call is made, by the task that makes it. tonic's `CancellationHandle` ends a stream of messages;
    /// a unary call is cancelled by dropping it, for to its message nothing can happen any more.
    ///
    /// # Deadlines
    /// A call's deadline is the smallest of what its `grpc-timeout` field, a
    /// [`Deadline`](crate::Deadline) in its extensions or options, and [`timeout`](Self::timeout) say.
    /// Every attempt is told what is left of it. When it passes the call is over, whether an attempt is
    /// under way, a wait, or the answer is being read, with a response that says DEADLINE_EXCEEDED;
    /// the types stay the inner service's own ([`Answered`](crate::Answered)). So it is, at once, where
    /// a retry would have to wait past it: the message then tells what the last attempt failed with. A
    /// call without a deadline has no timer.
    pub fn grpc() -> Self {
        let policy =
            Self::with_protocol(Grpc::default(), grpc_schedule(), RetryBudget::unlimited());
        policy.replay(ReplayLimits::default().per_call(256 * 1024))
    }
}

/// ±20 % around 100 ms, doubling up to 5 s.
fn grpc_schedule() -> Exponential {
    let base = Duration::from_millis(100);
    // The factor is within (0, 1), the one thing that could be refused.
    Exponential::symmetric(base, 0.2).unwrap_or_else(|_| Exponential::full_jitter(base))
}

impl<D, B, M> RetryPolicy<Grpc, D, B, M>
where
    D: Schedule + Clone,
    B: Clone,
{
    /// Gives one gRPC code a verdict of its own, in place of the table's.
    ///
    /// ```
    /// use reattempt_core::{Failure, FailureKind, Verdict};
    /// use reattempt_grpc::Code;
    /// use reattempt::RetryPolicy;
    ///
    /// // Optimistic transactions that may simply be tried again.
    /// let failure = Failure::new(FailureKind::Server).with_code(Code::Aborted.number());
    /// let policy = RetryPolicy::grpc().on_code(Code::Aborted, Verdict::Unprocessed(failure));
    /// ```
    pub fn on_code(self, code: Code, verdict: Verdict) -> Self {
        self.set(|settings| settings.protocol.set_code(code, verdict))
    }

    /// Sets if an attempt that the server's application never saw is replaced at once (rules TR-1 to
    /// TR-9): one that the server refused by REFUSED_STREAM or GOAWAY, and one that was never handed to
    /// its connection, each once for a call. That is no retry: it counts for no limit, costs the budget
    /// nothing, and is also done where [`max_attempts`](Self::max_attempts) is 1. On by default.
    ///
    /// These are the two switches of rule TR-8: `max_attempts(1)` turns the retries off, this the
    /// replacements; [`CallOptions::never_retry`](crate::CallOptions::never_retry) turns off both for a
    /// call. Replaced or not, such an attempt is also one that is retried like any other refusal.
    pub fn transparent_retries(self, replaced: bool) -> Self {
        self.set(|settings| settings.protocol.replaces = replaced)
    }

    /// Sets if a `google.rpc.RetryInfo` among the details of a status is read (rule RI-4). Off by
    /// default.
    ///
    /// The delay in it is a minimum for a failure that is retried anyway: the schedule's counts where
    /// it is longer. Pushback wins over it, and
    /// [`max_server_delay`](Self::max_server_delay) bounds it.
    pub fn retry_info(self, read: bool) -> Self {
        self.set(|settings| settings.protocol.retry_info = read)
    }

    /// The most time for a whole call, with all its attempts, its waits and the reading of its answer,
    /// where neither the call nor its caller sets less (rule DL-1). None by default.
    pub fn timeout(self, timeout: Duration) -> Self {
        self.set(|settings| settings.protocol.timeout = Some(timeout))
    }
}

impl RetryLayer<RetryPolicy<Grpc>> {
    /// Retries of gRPC calls with every default ([`RetryPolicy::grpc`]).
    pub fn grpc() -> Self {
        Self::new(RetryPolicy::grpc())
    }
}

impl HedgeLayer<HedgePolicy<Grpc>> {
    /// Hedging of gRPC calls, **all of them**, with every default ([`HedgePolicy::grpc`]).
    pub fn grpc() -> Self {
        Self::new(HedgePolicy::grpc())
    }
}

impl HedgePolicy<Grpc> {
    /// Hedging of gRPC calls: **of every method** that is called through it (rule HG-14).
    ///
    /// The codes that leave the other attempts running are UNAVAILABLE, RESOURCE_EXHAUSTED and
    /// DEADLINE_EXCEEDED, unless [`non_fatal_codes`](Self::non_fatal_codes) says otherwise. No budget
    /// unless one is given; up to 256 KiB of each request kept. A response whose headers are not its
    /// end wins, whatever status its trailers will bring (rules COM-1, HG-3).
    pub fn grpc() -> Self {
        let policy = Self::with_protocol(Grpc::default(), RetryBudget::unlimited());
        policy.replay(ReplayLimits::default().per_call(256 * 1024))
    }
}

impl PaceLayer<Grpc> {
    /// Paces gRPC calls: throttled is RESOURCE_EXHAUSTED, where it is among the headers of a response
    /// that has no messages. A status after messages passes unseen, and the call counts as a success.
    pub fn grpc(pace: Responsive) -> Self {
        Self::with_protocol(pace, Grpc::default())
    }
}

impl<M> PaceLayer<Grpc, M> {
    /// Gives one gRPC code a verdict of its own, in place of the table's.
    pub fn on_code(self, code: Code, verdict: Verdict) -> Self {
        self.set(|settings| settings.protocol.set_code(code, verdict))
    }
}
