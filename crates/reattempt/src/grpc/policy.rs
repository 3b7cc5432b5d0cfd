//! Constructors of policies and layers for gRPC.

use reattempt_schedule_responsive::Responsive;

use super::Grpc;
use crate::hedge::{HedgeLayer, HedgePolicy};
use crate::pace::PaceLayer;
use crate::policy::RetryPolicy;
use crate::retry::RetryLayer;

impl RetryPolicy<Grpc> {
    /// Retries of gRPC calls, by the code of a trailers-only response.
    ///
    /// Delays of 100 ms, doubling up to 5 s, ± 20 %; three attempts; no budget unless one is given;
    /// up to 256 KiB of each request kept. What a server's application never saw is replaced at once
    /// ([`transparent_retries`](Grpc::transparent_retries)).
    ///
    /// A response whose headers are not its end commits the call (rule COM-1); what becomes of it then
    /// its [body](crate::grpc::GrpcBody) sees.
    ///
    /// # What is retried
    /// Beside it, what an empty service config retries by a
    /// [`ServiceConfigLayer`](crate::grpc::service_config::ServiceConfigLayer). "Repeatable" is a call whose
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
    /// only if [`on_code`](Grpc::on_code) or a service config lists it.
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
    /// [`Deadline`](crate::Deadline) in its extensions or options, and [`timeout`](Grpc::timeout) say.
    /// Every attempt is told what is left of it. When it passes the call is over, whether an attempt is
    /// under way, a wait, or the answer is being read, with a response that says DEADLINE_EXCEEDED;
    /// the types stay the inner service's own ([`Answered`](crate::error::Answered)). So it is, at once, where
    /// a retry would have to wait past it: the message then tells what the last attempt failed with. A
    /// call without a deadline has no timer.
    pub fn grpc() -> Self {
        Self::with(Grpc::new())
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
        Self::with(Grpc::new())
    }
}

impl PaceLayer<Grpc> {
    /// Paces gRPC calls: throttled is RESOURCE_EXHAUSTED, where it is among the headers of a response
    /// that has no messages. A call that cannot wait is answered RESOURCE_EXHAUSTED, or DEADLINE_EXCEEDED for
    /// a deadline. A status after messages passes unseen, and the call counts as a success.
    pub fn grpc(pace: Responsive) -> Self {
        Self::with(pace, Grpc::new())
    }
}
