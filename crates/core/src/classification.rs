//! The classification of an attempt's outcome: verdict, server hint, and the trait that gives a verdict.

use core::time::Duration;

use crate::{Failure, FailureKind};

/// The meaning of an attempt's outcome.
///
/// The two retryable verdicts differ in one thing only: after [`Transient`](Verdict::Transient) the request
/// may have been processed, after [`Unprocessed`](Verdict::Unprocessed) it was not. So only the latter allows
/// a retry of a request that must not be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// The caller has its response.
    Success,
    /// The attempt failed, and another would end the same way.
    Permanent,
    /// The attempt failed, and another may succeed. The request may have been processed, so it is retried
    /// only if it is repeatable.
    Transient(Failure),
    /// The attempt failed before the server did any work. Every request may be retried.
    Unprocessed(Failure),
}

impl Verdict {
    /// A failure that another attempt may mend, of a server that may have processed the request.
    ///
    /// ```
    /// use reattempt_core::{FailureKind, Verdict};
    ///
    /// let verdict = Verdict::transient();
    /// assert_eq!(verdict.failure().map(|failure| failure.kind()), Some(FailureKind::Server));
    /// ```
    pub const fn transient() -> Self {
        Verdict::Transient(Failure::new(FailureKind::Server))
    }

    /// A failure before any work was done: every request may be retried.
    pub const fn not_processed() -> Self {
        Verdict::Unprocessed(Failure::new(FailureKind::Server))
    }

    /// A refusal because of too many requests: every request may be retried, and a shared pace slows down.
    pub const fn throttled() -> Self {
        Verdict::Unprocessed(Failure::new(FailureKind::Throttled))
    }

    /// Returns the failure of the two retryable verdicts; `None` for the others.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Verdict::Transient(failure) | Verdict::Unprocessed(failure) => Some(failure),
            Verdict::Success | Verdict::Permanent => None,
        }
    }

    /// Returns the classification with this verdict and a hint.
    ///
    /// ```
    /// use std::time::Duration;
    /// use reattempt_core::{ServerHint, Verdict};
    ///
    /// let wait = ServerHint::After(Duration::from_secs(3));
    /// assert_eq!(Verdict::throttled().with_hint(wait).hint, wait);
    /// ```
    #[must_use]
    pub const fn with_hint(self, hint: ServerHint) -> Classification {
        Classification { verdict: self, hint }
    }
}

/// A server's request about the next attempt, sent beside its response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ServerHint {
    /// The server asked for nothing.
    #[default]
    None,
    /// The next attempt must not be sent sooner than this.
    After(Duration),
    /// The next attempt must not be sent sooner than this. The schedule's delay still counts if it is longer
    /// (gRPC's `RetryInfo`).
    AtLeast(Duration),
    /// The next attempt is sent after exactly this, without jitter and however long it is (gRPC's
    /// pushback).
    Exactly(Duration),
    /// No further attempt must be sent.
    Stop,
}

impl ServerHint {
    /// Combines the hint of a classifier with the one in the server's own headers.
    ///
    /// [`Stop`](Self::Stop) counts from either. Otherwise the classifier's hint replaces the server's.
    #[must_use]
    pub const fn or(self, of_server: Self) -> Self {
        match (self, of_server) {
            (_, Self::Stop) | (Self::None, _) => of_server,
            (own, _) => own,
        }
    }
}

/// A verdict and the server's hint: all that a decision depends on of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Classification {
    /// The meaning of the outcome.
    pub verdict: Verdict,
    /// The server's hint.
    pub hint: ServerHint,
}

impl Classification {
    /// Creates the classification of an outcome without a hint.
    pub const fn new(verdict: Verdict) -> Self {
        Self { verdict, hint: ServerHint::None }
    }
}

impl From<Verdict> for Classification {
    fn from(verdict: Verdict) -> Self {
        Self::new(verdict)
    }
}

/// A function from outcomes to classifications that covers some outcomes and leaves the others.
///
/// An outcome that it leaves (`None`) goes to the next classifier, and at last to the protocol's own table.
/// So a custom classifier adds to the defaults and drops none of them by accident. Every
/// `Fn(Outcome) -> Option<Verdict>` is one, and every `Fn(Outcome) -> Option<Classification>`, which also
/// supplies a hint.
///
/// ```
/// use reattempt_core::{Classifier, Failure, FailureKind, Verdict};
///
/// let conflict = |status: u16| {
///     (status == 409).then_some(Verdict::Transient(Failure::new(FailureKind::Server)))
/// };
/// assert!(conflict.classify(409).is_some());
/// assert!(conflict.classify(503).is_none(), "left to the table");
/// ```
pub trait Classifier<Outcome> {
    /// Returns the classification of `outcome`; `None` leaves it to the next classifier.
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
