//! The throttle: one bucket of tokens that stops retries and hedges while a server mostly fails.
//!
//! A failure takes its token when it happens. A retry takes none: it is allowed if the level of the bucket is high
//! enough, and nothing is ever given back. First attempts and transparent retries are always allowed
//! (rules THR-7, THR-8).

mod bucket;
pub(crate) mod throttling;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bucket::Bucket;
use reattempt_core::{Budget, Failure, Permit, ServerHint};

pub use throttling::Throttling;

/// Throttles the retries and hedges of all calls to one server, by the rules of gRPC.
///
/// A bucket of tokens starts full. A failure that counts takes one token, a call that succeeds adds
/// `tokenRatio`, and retries are sent only while more than half of the tokens are there. Without
/// settings nothing is throttled (rule THR-11).
///
/// Clones share the bucket: one throttle belongs to one channel, whatever methods it calls (rule
/// THR-1). Lock-free, and exact under contention.
///
/// ```
/// use reattempt_grpc::{Throttle, Throttling};
///
/// let throttle = Throttle::new(Some(Throttling::new(4.0, 0.5)?));
/// assert!(throttle.failed(), "3 of 4 tokens are left, and retries go on");
/// assert!(!throttle.failed(), "2 are left, which is half, and they do not");
/// throttle.succeeded();
/// assert!(!throttle.is_throttled(), "2.5 are left");
/// # Ok::<(), reattempt_core::ConfigError>(())
/// ```
///
/// # As a budget
///
/// As a [`Budget`] it takes its token when an attempt fails, and the permit of a retry is free. That is the
/// order of the rules: the last attempt that is allowed costs a token as well (RET-1).
///
/// A failure that no retry would mend earns nothing, for only status OK does (rule THR-4), and costs
/// nothing, unless the server says stop beside it (rules THR-3, PB-8).
#[derive(Clone)]
pub struct Throttle {
    bucket: Arc<Bucket>,
}

impl Throttle {
    /// A throttle with a full bucket, or one that lets everything pass.
    pub fn new(settings: Option<Throttling>) -> Self {
        Self { bucket: Arc::new(Bucket::new(settings)) }
    }

    /// Takes a token for an attempt that has failed, and says whether a retry may follow (rules
    /// THR-3, THR-5).
    ///
    /// For a failure with a code that the policy lists, and for every pushback that says stop; once
    /// for an attempt, a transparent one left out.
    pub fn failed(&self) -> bool {
        !self.bucket.debit()
    }

    /// Adds `tokenRatio` for a call that has ended with status OK (rule THR-4): once, whatever its
    /// method.
    #[inline]
    pub fn succeeded(&self) {
        self.bucket.credit();
    }

    /// Returns `true` if no retry and no hedge may be sent now.
    pub fn is_throttled(&self) -> bool {
        self.bucket.is_throttled()
    }

    /// Goes over to the settings of a new service config.
    ///
    /// With the same settings nothing changes. Otherwise the bucket keeps its level, as a part of
    /// what it can hold, so that a new config is no free refill. All clones go over at once, those
    /// that calls under way hold too. A bucket that was not there before starts full.
    pub fn configure(&self, settings: Option<Throttling>) {
        self.bucket.configure(settings);
    }

    /// The tokens that are left, in thousandths; `None` if nothing is throttled.
    pub fn tokens_thousandths(&self) -> Option<u32> {
        self.bucket.tokens()
    }
}

impl From<Throttling> for Throttle {
    fn from(settings: Throttling) -> Self {
        Self::new(Some(settings))
    }
}

impl Budget for Throttle {
    /// A permit that cost nothing, unless retries are throttled.
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        (!self.is_throttled()).then(Permit::free)
    }

    /// Takes the token and reads the level in one step.
    fn acquire_after_failure(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        (!self.bucket.debit()).then(Permit::free)
    }

    fn on_failure(&self, _: &str, _: &Failure, _: Duration) {
        self.bucket.debit();
    }

    fn on_success(&self, _: &str, _: u32) {
        self.bucket.credit();
    }

    fn on_permanent_failure(&self, _: &str, hint: ServerHint, _: u32) {
        if hint == ServerHint::Stop {
            self.bucket.debit();
        }
    }

    #[inline]
    fn is_full(&self) -> bool {
        self.bucket.is_full()
    }
}

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Throttle")
            .field("tokens_thousandths", &self.tokens_thousandths())
            .finish_non_exhaustive()
    }
}
