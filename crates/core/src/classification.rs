//! The classification of outcomes: verdicts, server hints, and the `Classifier` trait.

use core::time::Duration;

use crate::{Failure, FailureKind};

/// The meaning of an attempt's outcome.
///
/// [`Transient`](Verdict::Transient) and [`NotProcessed`](Verdict::NotProcessed) are *retryable*. Only `NotProcessed`
/// proves that the request was not processed, so only it allows a retry of a request that must not be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// The attempt succeeded; the caller gets its response.
    Success,
    /// The attempt failed, and another attempt would fail the same way.
    Permanent,
    /// The attempt failed, and another may succeed. The request may have been processed, so it is retried only if it is
    /// repeatable.
    Transient(Failure),
    /// The attempt failed before the server did any work. Any request may be retried.
    NotProcessed(Failure),
}

impl Verdict {
    /// Creates a transient verdict for a server failure: the request may have been processed.
    ///
    /// ```
    /// use reattempt::Verdict;
    /// use reattempt::schedule::FailureKind;
    /// # mod reattempt { pub use reattempt_core as schedule; pub use reattempt_core::Verdict; }
    ///
    /// let verdict = Verdict::transient();
    /// assert_eq!(verdict.failure().map(|failure| failure.kind()), Some(FailureKind::Server));
    /// ```
    pub const fn transient() -> Self {
        Verdict::Transient(Failure::new(FailureKind::Server))
    }

    /// Creates the verdict for a failure that occurred before the server did any work. Any request may be retried.
    pub const fn not_processed() -> Self {
        Verdict::NotProcessed(Failure::new(FailureKind::Server))
    }

    /// Creates the verdict for a request refused because of rate limiting. Any request may be retried, and a shared
    /// pace slows down.
    pub const fn throttled() -> Self {
        Verdict::NotProcessed(Failure::new(FailureKind::Throttled))
    }

    /// Creates the verdict for a request that the server rejected because something that the caller renews has expired:
    /// a token, a signature, a session. Any request may be retried.
    ///
    /// Guards count the attempt as served, because the server did its work. All calls that carried the same token fail
    /// together, so budgets count them as one [event](crate::Evidence#events).
    ///
    /// ```
    /// use reattempt::Verdict;
    /// use reattempt::schedule::FailureKind;
    /// # mod reattempt { pub use reattempt_core as schedule; pub use reattempt_core::Verdict; }
    ///
    /// let verdict = Verdict::renew();
    /// assert_eq!(verdict.failure().map(|failure| failure.kind()), Some(FailureKind::Stale));
    /// ```
    pub const fn renew() -> Self {
        Verdict::NotProcessed(Failure::new(FailureKind::Stale))
    }

    /// Creates the verdict for a response that is not the result yet: the server asks the client to come back for it
    /// after a wait, such as a 202 with `Retry-After`.
    ///
    /// If the request is repeatable and the response contains a wait, it is sent again after that wait. This costs
    /// neither an attempt nor a retry from the budget, and guards count the response as served. Only time ends it: the
    /// limits on elapsed time and on the server's delay, and the deadline. The caller then gets the response itself. A
    /// wait below 100 ms is lengthened to that.
    ///
    /// Otherwise the response is a success: without a wait, for a request that must not be repeated, and for hedged
    /// calls. So is every 202 of a POST that starts the work. If a classifier returns this verdict, the last allowed
    /// attempt of a retried call does not poll, because its request is not kept; `on_status` keeps it.
    ///
    /// ```
    /// use reattempt::Verdict;
    /// use reattempt::schedule::FailureKind;
    /// # mod reattempt { pub use reattempt_core as schedule; pub use reattempt_core::Verdict; }
    ///
    /// // `RetryPolicy::http().on_status(StatusCode::ACCEPTED, Verdict::pending())` polls.
    /// assert!(Verdict::pending().is_pending());
    /// assert_eq!(Verdict::pending().failure().map(|failure| failure.kind()), Some(FailureKind::Pending));
    /// ```
    pub const fn pending() -> Self {
        Verdict::Transient(Failure::new(FailureKind::Pending))
    }

    /// Returns `true` if the response is not the result yet ([`pending`](Self::pending)).
    pub const fn is_pending(&self) -> bool {
        match self.failure() {
            Some(failure) => matches!(failure.kind(), FailureKind::Pending),
            None => false,
        }
    }

    /// Returns the failure if the verdict is retryable, or `None` otherwise.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Verdict::Transient(failure) | Verdict::NotProcessed(failure) => Some(failure),
            Verdict::Success | Verdict::Permanent => None,
        }
    }

    /// Adds the server's hint to this verdict.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt::Verdict;
    /// use reattempt::classify::ServerHint;
    /// # mod reattempt { pub use reattempt_core as classify; pub use reattempt_core::Verdict; }
    ///
    /// let wait = ServerHint::After(Duration::from_secs(3));
    /// assert_eq!(Verdict::throttled().with_hint(wait).hint, wait);
    /// ```
    #[must_use]
    pub const fn with_hint(self, hint: ServerHint) -> Classification {
        Classification { verdict: self, hint }
    }
}

/// A server's request about the next attempt, sent with its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ServerHint {
    /// The server gave no hint.
    #[default]
    None,
    /// The shortest delay before the next attempt (`Retry-After`). It replaces the schedule's delay, and is randomly
    /// lengthened by up to 10 %. A hint of zero leaves the schedule's delay unchanged.
    After(Duration),
    /// Like [`After`](Self::After), except that the schedule's delay is used if it is longer (gRPC's `RetryInfo`).
    AtLeast(Duration),
    /// The next attempt is sent after exactly this time, without jitter. The limit on a server's delay
    /// ([`Limits::max_server_delay`](crate::Limits::max_server_delay)) does not apply (gRPC's pushback).
    Exactly(Duration),
    /// The server asked for a delay in a form that cannot be read. The schedule's delay is used, drawn from the upper
    /// half of its jitter.
    Unreadable,
    /// No further attempt may be sent.
    Stop,
}

impl ServerHint {
    /// Combines a classifier's hint with the one in the server's headers.
    ///
    /// A [`Stop`](Self::Stop) from either side wins. Otherwise the classifier's hint replaces the server's, unless it
    /// is [`None`](Self::None).
    #[must_use]
    pub const fn or(self, of_server: Self) -> Self {
        match (self, of_server) {
            (_, Self::Stop) | (Self::None, _) => of_server,
            (own, _) => own,
        }
    }
}

/// A verdict and the server's hint: the result of classifying an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Classification {
    /// The meaning of the outcome.
    pub verdict: Verdict,
    /// The server's hint.
    pub hint: ServerHint,
}

impl Classification {
    /// Creates a classification without a server hint.
    pub const fn new(verdict: Verdict) -> Self {
        Self { verdict, hint: ServerHint::None }
    }

    /// Returns the hint as far as it binds an attempt at another server.
    ///
    /// The delay that a failing server requests is its own matter. A server that limits its callers speaks for all
    /// servers of the account, and gRPC's pushback for the call.
    #[must_use]
    pub fn hint_elsewhere(&self) -> ServerHint {
        let throttled = || self.verdict.failure().is_some_and(|failure| failure.kind() == FailureKind::Throttled);
        match self.hint {
            ServerHint::After(_) | ServerHint::AtLeast(_) | ServerHint::Unreadable if !throttled() => ServerHint::None,
            hint => hint,
        }
    }
}

impl From<Verdict> for Classification {
    fn from(verdict: Verdict) -> Self {
        Self::new(verdict)
    }
}

/// A function that classifies some outcomes and returns `None` for the others.
///
/// If it returns `None`, the next classifier is called; the protocol's own table comes last. A custom classifier
/// therefore cannot disable the defaults by accident.
///
/// Every `Fn(Outcome) -> Option<Verdict>` is a classifier. So is every `Fn(Outcome) -> Option<Classification>`,
/// which also supplies a hint.
///
/// ```
/// use reattempt::Verdict;
/// use reattempt::classify::Classifier;
/// use reattempt::schedule::{Failure, FailureKind};
/// # mod reattempt {
/// #     pub use reattempt_core::{self as classify, self as schedule, Verdict};
/// # }
///
/// let conflict = |status: u16| {
///     (status == 409).then_some(Verdict::Transient(Failure::new(FailureKind::Server)))
/// };
/// assert!(conflict.classify(409).is_some());
/// assert!(conflict.classify(503).is_none(), "left to the table");
/// ```
///
/// Implement the trait for the outcome type that the classifier takes, by value or by reference:
///
/// ```
/// use reattempt::Verdict;
/// use reattempt::classify::{Classification, Classifier, ServerHint};
/// # mod reattempt { pub use reattempt_core as classify; pub use reattempt_core::Verdict; }
///
/// enum Reply { Busy(core::time::Duration), Done }
///
/// struct Busy;
///
/// impl Classifier<&Reply> for Busy {
///     fn classify(&self, reply: &Reply) -> Option<Classification> {
///         match reply {
///             Reply::Busy(wait) => Some(Verdict::throttled().with_hint(ServerHint::After(*wait))),
///             Reply::Done => None,
///         }
///     }
/// }
/// ```
pub trait Classifier<Outcome> {
    /// Classifies `outcome`, or returns `None` to defer to the next classifier.
    fn classify(&self, outcome: Outcome) -> Option<Classification>;
}

impl<F, Outcome, V> Classifier<Outcome> for F
where
    F: Fn(Outcome) -> Option<V>,
    V: Into<Classification>,
{
    fn classify(&self, outcome: Outcome) -> Option<Classification> {
        self(outcome).map(Into::into)
    }
}
