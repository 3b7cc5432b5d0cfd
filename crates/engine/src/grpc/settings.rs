//! The setters of [`Grpc`].

use std::time::Duration;

use reattempt_core::{Schedule, Verdict};
use reattempt_grpc::{Code, DescriptorSet};

use super::Grpc;
use crate::hedge::HedgePolicy;
use crate::policy::RetryPolicy;
use crate::protocol::{Http, message_setters, protocol_setters};

impl Grpc {
    /// Creates the protocol with the defaults listed at [`Grpc`].
    pub fn new() -> Self {
        Self::default()
    }

    message_setters!(messages);

    /// Overrides the verdict for one gRPC code.
    ///
    /// It applies to the codes that servers send, and to those that this layer and its client create: for a reset
    /// stream (such as INTERNAL), a lost connection (UNAVAILABLE) or an attempt that exceeded its time limit
    /// (DEADLINE_EXCEEDED). For a code that no server sent, it can only end or allow retries.
    /// [`Verdict::NotProcessed`] then counts as [`Verdict::Transient`], because it is no proof that a lost request was
    /// not processed. The end of the call's own deadline, and refusals by the caller's guards, are not affected.
    ///
    /// If a code is set twice, the first verdict applies.
    ///
    /// ```
    /// use reattempt::grpc::Grpc;
    /// use reattempt::{RetryPolicy, Verdict};
    /// use reattempt::grpc::GrpcCode;
    /// use reattempt::schedule::{Failure, FailureKind};
    ///
    /// // A server with optimistic transactions responds with ABORTED before it changes anything.
    /// let failure = Failure::new(FailureKind::Server).with_code(GrpcCode::Aborted.number());
    /// let grpc = Grpc::new().on_code(GrpcCode::Aborted, Verdict::NotProcessed(failure));
    /// let policy = RetryPolicy::with(grpc);
    /// ```
    #[must_use]
    pub fn on_code(mut self, code: Code, verdict: Verdict) -> Self {
        self.set_code(code, verdict);
        self
    }

    /// Sets whether every call may be processed twice. Default: `false`, because no gRPC method is known to be safe.
    ///
    /// With `false`, a call that the server may have processed is retried only if its
    /// [options](crate::CallOptions::repeatable) allow it. That includes UNAVAILABLE: proxies send it after their
    /// backend died with the call. With `true`, every call is retried after the codes in the table of
    /// [`RetryPolicy::grpc`](crate::RetryPolicy::grpc), and a [backup][backup] gets such calls too.
    ///
    /// The options of a call or of a rule take precedence. To declare single methods, use their descriptors
    /// ([`described_by`](Self::described_by)) or a rule:
    ///
    /// ```
    /// use reattempt::{CallOptions, RetryPolicy};
    ///
    /// // Every call may be repeated, except those that place an order.
    /// let policy = RetryPolicy::grpc().repeatable(true).options_for(|request| {
    ///     let places_order = request.path() == "/shop.Orders/Place";
    ///     places_order.then(|| CallOptions::new().repeatable(false))
    /// });
    ///
    /// // The methods of one service may be repeated.
    /// let policy = RetryPolicy::grpc().options_for(|request| {
    ///     let reads = request.path().starts_with("/shop.Catalog/");
    ///     reads.then(|| CallOptions::new().repeatable(true))
    /// });
    /// ```
    ///
    /// A service config's list of codes applies whatever this setting is. Hedging does not use it, because every call
    /// through a hedge layer may be hedged.
    ///
    /// [backup]: https://docs.rs/reattempt/latest/reattempt/fallback/struct.Backup.html
    #[doc(alias("idempotent", "safe", "retryable"))]
    #[must_use]
    pub fn repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }

    /// Declares the methods whose `.proto` file has an `idempotency_level` as repeatable. All other methods stay as
    /// they are. Can be called several times, for several sets.
    ///
    /// Both levels, `NO_SIDE_EFFECTS` and `IDEMPOTENT`, have the same effect on retries and
    /// [backups][backup]: that of [`repeatable(true)`](Self::repeatable) for the method. A retry
    /// follows the attempt before it, so both may be repeated. Hedging does not use this setting.
    /// [`DescriptorSet::level`](crate::grpc::DescriptorSet::level) tells the levels apart, for a hedged client of
    /// methods without side effects.
    ///
    /// The options of a call or of a rule take precedence.
    ///
    /// ```
    /// use reattempt::RetryPolicy;
    /// use reattempt::grpc::{DescriptorSet, DescriptorSetError};
    ///
    /// fn policy(descriptors: &[u8]) -> Result<RetryPolicy<reattempt::grpc::Grpc>, DescriptorSetError> {
    ///     Ok(RetryPolicy::grpc().described_by(DescriptorSet::parse(descriptors)?))
    /// }
    /// ```
    ///
    /// [backup]: https://docs.rs/reattempt/latest/reattempt/fallback/struct.Backup.html
    #[doc(alias("idempotency_level", "file_descriptor_set"))]
    #[must_use]
    pub fn described_by(mut self, set: DescriptorSet) -> Self {
        self.described.push(set);
        self
    }

    /// Sets whether an attempt that never reached the server's application is replaced immediately. Default: `true`.
    ///
    /// Such an attempt was refused with REFUSED_STREAM or GOAWAY, or was never written to its connection. Each of the
    /// two kinds is replaced once per call. A replacement is not a retry. It does not count towards any limit, takes no
    /// budget token, and is sent even if [`max_attempts`](crate::RetryPolicy::max_attempts) is 1. If no replacement is
    /// left, the attempt is retried like any other attempt that was not processed.
    ///
    /// `max_attempts(1)` turns off retries, and this setting turns off replacements.
    /// [`CallOptions::never_retry`](crate::CallOptions::never_retry) turns off both for a call. If a proxy sends
    /// REFUSED_STREAM after its backend processed the call, neither replacements nor retries are safe: set
    /// [`refused_stream_is_proof`](Self::refused_stream_is_proof) to `false`.
    // TR-1, TR-9, TR-8
    #[doc(alias("replacement", "transparent_retry"))]
    #[must_use]
    pub fn transparent_retries(mut self, replaced: bool) -> Self {
        self.replaces = replaced;
        self
    }

    /// Sets whether a `google.rpc.RetryInfo` in a status's details is read. Default: `false`.
    ///
    /// Its delay is the minimum delay before a retry that is sent anyway, or before the next hedge. A longer delay from
    /// the schedule is used unchanged. Pushback takes precedence over `RetryInfo`, and
    /// [`max_server_delay`](crate::RetryPolicy::max_server_delay) limits the delay.
    ///
    /// Unlike a pushback, a `RetryInfo` does not make a call retryable. It only describes when a retry may help, and
    /// services add it to every quota failure, whether or not a retry is safe.
    // RI-4
    #[must_use]
    pub fn retry_info(mut self, read: bool) -> Self {
        self.retry_info = read;
        self
    }

    /// Sets the time limit for a whole call: all attempts, all delays and reading the response. An earlier deadline of
    /// the call takes precedence. Default: none.
    // DL-1
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    fn messages(&mut self) -> &mut Http {
        &mut self.http
    }
}

/// Defines the gRPC-only setters. A type gets only those that have an effect on it.
#[doc(hidden)]
#[macro_export]
macro_rules! grpc_setters {
    ($($group:ident),+) => { $($crate::grpc_setters! { @$group })+ };
    (@safety) => {
        $crate::forward_setters! { Grpc:
            repeatable(repeatable: bool);
            described_by(set: $crate::grpc::DescriptorSet);
        }
    };
    (@codes) => { $crate::forward_setters! { Grpc: on_code(code: $crate::grpc::GrpcCode, verdict: $crate::Verdict); } };
    (@hints) => { $crate::forward_setters! { Grpc: retry_info(read: bool); } };
    (@calls) => {
        $crate::forward_setters! { Grpc: transparent_retries(replaced: bool); timeout(timeout: std::time::Duration); }
    };
}

pub use grpc_setters;

/// The protocol settings, which [`protocol`](RetryPolicy::protocol) and [`with`](RetryPolicy::with) also change.
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
impl<Backoff: Schedule + Clone, B: Clone, Mode> RetryPolicy<Grpc, Backoff, B, Mode> {
    protocol_setters!(Grpc: reading, sending, proving);
    grpc_setters!(safety, codes, hints, calls);
}

/// The protocol settings, which [`protocol`](HedgePolicy::protocol) and [`with`](HedgePolicy::with) also change.
impl<B: Clone, Mode> HedgePolicy<Grpc, B, Mode> {
    protocol_setters!(Grpc: reading, sending, proving);
    grpc_setters!(codes, hints, calls);
}
