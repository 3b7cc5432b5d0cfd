//! How an attempt ended, as far as the decision needs to know it.

use core::time::Duration;

use crate::Failure;

/// What an attempt's outcome means.
///
/// The two retryable verdicts differ in one thing only: whether the request may have been carried
/// out. That is what decides over a request that must not be repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Verdict {
    /// The caller has its answer.
    Success,
    /// It failed, and another attempt would end the same way.
    Permanent,
    /// It failed, another attempt may do better, and the request may have been carried out:
    /// a retry is right for a repeatable request only.
    Transient(Failure),
    /// It failed before any work was done: a retry is right for every request.
    Unprocessed(Failure),
}

impl Verdict {
    /// The failure, when the verdict is one of the two retryable ones.
    pub const fn failure(&self) -> Option<&Failure> {
        match self {
            Verdict::Transient(failure) | Verdict::Unprocessed(failure) => Some(failure),
            Verdict::Success | Verdict::Permanent => None,
        }
    }
}

/// What the server asked for beside its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum ServerHint {
    /// Nothing.
    #[default]
    None,
    /// Not to come back sooner than this.
    After(Duration),
    /// Not to come back sooner than this, beside the delay that is due anyway: the longer one counts
    /// (gRPC's `RetryInfo`).
    AtLeast(Duration),
    /// To come back after exactly this: neither sooner nor, for the sake of jitter, later, and
    /// however long it is (gRPC's pushback).
    Exactly(Duration),
    /// Not to come back at all.
    Stop,
}

/// A verdict and the server's wish: everything the decision knows of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Classification {
    /// What the outcome means.
    pub verdict: Verdict,
    /// What the server asked for.
    pub hint: ServerHint,
}

impl Classification {
    /// The classification of an outcome that came without a hint.
    pub const fn new(verdict: Verdict) -> Self {
        Self { verdict, hint: ServerHint::None }
    }
}

impl From<Verdict> for Classification {
    fn from(verdict: Verdict) -> Self {
        Self::new(verdict)
    }
}

/// Says what an outcome means, or leaves it to the next in line.
///
/// `None` is "no opinion": the protocol's own table then speaks. So a custom classifier adds to the
/// defaults and can drop none of them by accident. Every `Fn(Outcome) -> Option<Verdict>` is one.
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
    /// The verdict on `outcome`, or `None` to leave it to the next classifier.
    fn classify(&self, outcome: Outcome) -> Option<Verdict>;
}

impl<F, Outcome> Classifier<Outcome> for F
where
    F: Fn(Outcome) -> Option<Verdict>,
{
    fn classify(&self, outcome: Outcome) -> Option<Verdict> {
        self(outcome)
    }
}
