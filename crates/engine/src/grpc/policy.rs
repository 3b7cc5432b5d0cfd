//! Constructors for gRPC policies and layers.

use super::Grpc;
use crate::hedge::{HedgeLayer, HedgePolicy};
use crate::policy::RetryPolicy;
use crate::retry::RetryLayer;

impl RetryPolicy<Grpc> {
    /// Creates a policy for gRPC calls.
    ///
    /// | setting | default |
    /// |---|---|
    /// | schedule | 100 ms, doubling up to 5 s, ± 20 % |
    /// | attempts | 3 |
    /// | elapsed time | 30 s |
    /// | budget | none |
    /// | saved body per request | 256 KiB |
    /// | attempts that no server application has processed | [replaced](Grpc::transparent_retries) immediately, once |
    ///
    /// After a response, a call is retried only if the response headers contain the status. Any other response ends the
    /// retries, and its [body](crate::grpc::GrpcBody) reads the status.
    ///
    /// # What is retried
    /// A call is repeatable only if its [options](crate::CallOptions::repeatable), a [rule](Grpc::options_for), the
    /// [policy](Grpc::repeatable) or its [descriptor](Grpc::described_by) allow it. For comparison, the last column
    /// shows a [`ServiceConfigLayer`](crate::grpc::service_config::ServiceConfigLayer) with an empty config.
    ///
    /// | outcome before any response headers | `grpc()` | an empty service config |
    /// |---|---|---|
    /// | a request that no server application has processed: it was refused with REFUSED_STREAM, excluded by a GOAWAY, or never dispatched | replaced immediately, once; then retried | replaced immediately, once |
    /// | a failed connection | retried | retried |
    /// | a code in the next row, with a pushback (`grpc-retry-pushback-ms`) that asks for a retry | retried | not retried |
    /// | UNAVAILABLE, RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED from the server, a time limit of the inner client, a lost connection, HTTP status 429, 502, 503 or 504 | retried if repeatable | not retried |
    /// | every other code, an error of an unknown type | not retried | not retried |
    ///
    /// UNAVAILABLE is no proof that the server did nothing, although it often means that. Proxies send it after their
    /// backend died with the call. Servers send RESOURCE_EXHAUSTED if the response of a finished call exceeds their
    /// message limit. One line declares that every call may be repeated:
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    ///
    /// let policy = RetryPolicy::grpc().repeatable(true);
    /// ```
    ///
    /// Another line, [`described_by`](Grpc::described_by), declares the methods whose `.proto` file has an
    /// `idempotency_level`.
    ///
    /// CANCELLED means that the caller has cancelled the call. It is retried only if [`on_code`](Grpc::on_code) or a
    /// service config lists it.
    ///
    /// # Errors
    /// A lost connection results in UNAVAILABLE, and a time limit of the inner client in DEADLINE_EXCEEDED. The message
    /// contains the cause. Outer layers classify such a response like the original error, because no server sent the
    /// response.
    ///
    /// # Cancel safety
    /// The message of a unary call is encoded on the caller's task, as are up to two frames of a message stream.
    /// tonic's `CancellationHandle` ends a message stream. To cancel a unary call, drop it.
    ///
    /// # Deadlines
    /// The deadline of a call is the earliest of three: its `grpc-timeout` header, a [`Deadline`](crate::Deadline) in
    /// its extensions or options, and [`timeout`](Grpc::timeout). Every attempt sends the time left in its own
    /// `grpc-timeout`.
    ///
    /// A call whose deadline passes ends with DEADLINE_EXCEEDED, whether during an attempt, during a delay, or while
    /// the response is read. Calls keep the inner service's error type ([`Answered`](crate::error::Answered)). If the
    /// delay before a retry would exceed the deadline, the call ends immediately, and the message contains the last
    /// failure. A call without a deadline has no timer.
    // COM-1
    pub fn grpc() -> Self {
        Self::with(Grpc::new())
    }
}

impl RetryLayer<RetryPolicy<Grpc>> {
    /// Creates a layer that retries gRPC calls with the defaults of [`RetryPolicy::grpc`].
    pub fn grpc() -> Self {
        Self::new(RetryPolicy::grpc())
    }
}

impl HedgeLayer<HedgePolicy<Grpc>> {
    /// Creates a layer that hedges **all** gRPC calls with the defaults of [`HedgePolicy::grpc`].
    pub fn grpc() -> Self {
        Self::new(HedgePolicy::grpc())
    }
}

impl HedgePolicy<Grpc> {
    /// Creates a policy that hedges gRPC calls **to every method**.
    ///
    /// By default, UNAVAILABLE, RESOURCE_EXHAUSTED and DEADLINE_EXCEEDED do not end the other attempts
    /// ([`non_fatal_codes`](Self::non_fatal_codes)). There is no budget, and up to 256 KiB of each request are saved.
    /// All other defaults are listed at [`HedgePolicy`]. A response without a status in its headers wins, whatever the
    /// status in its trailers.
    // HG-14, COM-1, HG-3
    pub fn grpc() -> Self {
        Self::with(Grpc::new())
    }
}
