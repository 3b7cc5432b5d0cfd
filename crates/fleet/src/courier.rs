//! The transport of messages to the store and back: tokio tasks in programs, a custom transport in simulations.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::store::BoxError;

/// The carrier of messages to a store.
pub trait Courier: Send + Sync + 'static {
    /// Returns the monotonic time since a fixed instant.
    fn now(&self) -> Duration;

    /// Returns `true` if a message can currently be sent.
    fn is_ready(&self) -> bool;

    /// Returns the jitter's seed.
    fn seed(&self) -> u64;

    /// Carries a message to the store. A dropped message is treated as unanswered.
    fn carry(&self, message: Message);
}

/// A message to the store.
#[derive(Debug)]
pub enum Message {
    /// A request for a retry's tokens.
    Question(Question),
    /// A report of earned tokens.
    Report(Report),
}

/// A request to the store. If it is dropped without an answer, the process decides alone.
#[derive(Debug)]
pub struct Question(pub(crate) Arc<dyn Asking>);

/// The amounts of a question, in millionths of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amounts {
    /// The tokens earned.
    pub earned: u64,
    /// The cost of the retry.
    pub cost: u64,
    /// The tokens that the bucket must have at least.
    pub least: u64,
}

/// A report of earned tokens, to be sent after a delay.
#[derive(Debug)]
pub struct Report(pub(crate) Box<dyn Reporting>);

/// The sender of a question.
pub(crate) trait Asking: fmt::Debug + Send + Sync {
    fn key(&self) -> &str;
    fn amounts(&self) -> Amounts;
    fn patience(&self) -> Duration;
    fn is_late(&self);
    fn is_lost(&self);
    fn answer(&self, answer: Result<bool, BoxError>);
}

/// The sender of a report.
pub(crate) trait Reporting: fmt::Debug + Send + Sync {
    fn key(&self) -> &str;
    fn delay(&self) -> Duration;
    fn take(&self) -> Option<u64>;
    fn answer(&self, answer: Result<bool, BoxError>);
}

impl Question {
    /// Returns the key of the bucket.
    pub fn key(&self) -> &str {
        self.0.key()
    }

    /// Returns the amounts to settle.
    pub fn amounts(&self) -> Amounts {
        self.0.amounts()
    }

    /// Returns how long the failed outcome is held while waiting for the answer.
    pub fn patience(&self) -> Duration {
        self.0.patience()
    }

    /// Records that there was no answer in time. The answer may still arrive later.
    pub fn is_late(&self) {
        self.0.is_late();
    }

    /// Records the store's answer.
    pub fn answer(self, answer: Result<bool, BoxError>) {
        self.0.answer(answer);
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        self.0.is_lost();
    }
}

impl Report {
    /// Returns the key of the bucket.
    pub fn key(&self) -> &str {
        self.0.key()
    }

    /// Returns the delay after which the report should be sent.
    pub fn delay(&self) -> Duration {
        self.0.delay()
    }

    /// Takes the tokens to report. Call this method after the delay. Returns `None` if there is nothing to report, or
    /// if the store is failing.
    pub fn take(&self) -> Option<u64> {
        self.0.take()
    }

    /// Records the result of the report: the store accepted it or failed.
    pub fn answer(self, answer: Result<bool, BoxError>) {
        self.0.answer(answer);
    }
}
