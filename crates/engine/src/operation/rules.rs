//! The rules of an operation: which of its results are retried, and who is notified of retries.
//!
//! Each setter of [`Retrying`](super::Retrying) wraps the rules set before it.

use std::time::Duration;

use reattempt_core::{Classification, Failure, FailureKind, Fault, Verdict};

/// The rules for an operation's results, made by the methods of [`Retrying`](super::Retrying).
///
/// No other type can implement it.
pub trait Rules<T, E> {
    /// Classifies an error. If the verdict is not retryable, the call ends with the error.
    #[doc(hidden)]
    fn of_error(&mut self, error: &E) -> ClassifiedResult;

    /// Classifies a value, or returns `None` to accept it.
    #[doc(hidden)]
    fn of_value(&mut self, value: &T) -> Option<ClassifiedResult>;

    /// Notifies the caller of the retry after a result.
    #[doc(hidden)]
    fn on_retry(&mut self, result: Result<&T, &E>, delay: Duration);
}

/// The classification of a result, with what else it shows.
#[doc(hidden)]
#[derive(Debug, Clone, Copy)]
pub struct ClassifiedResult {
    pub(super) classification: Classification,
    /// The party whose fault it is, if the result shows that it is not the server's.
    pub(super) fault: Option<Fault>,
    /// The status code of a value, for reports.
    pub(super) code: Option<u16>,
}

impl ClassifiedResult {
    /// Returns the judgement of a result that fulfils a condition of the caller.
    pub(super) const fn transient() -> Self {
        let verdict = Verdict::Transient(Failure::new(FailureKind::Other));
        Self { classification: Classification::new(verdict), fault: None, code: None }
    }
}

impl From<Classification> for ClassifiedResult {
    fn from(classification: Classification) -> Self {
        Self { classification, fault: None, code: None }
    }
}

/// The default rules: every error is retried, and every value is accepted.
#[derive(Debug, Clone, Copy, Default)]
pub struct EveryError;

impl<T, E> Rules<T, E> for EveryError {
    fn of_error(&mut self, _: &E) -> ClassifiedResult {
        ClassifiedResult::transient()
    }

    #[inline]
    fn of_value(&mut self, _: &T) -> Option<ClassifiedResult> {
        None
    }

    fn on_retry(&mut self, _: Result<&T, &E>, _: Duration) {}
}

/// Rules with another classifier of errors.
pub(super) struct WithErrors<R, F> {
    pub(super) rules: R,
    pub(super) classify: F,
}

impl<T, E, R, F> Rules<T, E> for WithErrors<R, F>
where
    R: Rules<T, E>,
    F: FnMut(&E) -> Classification,
{
    fn of_error(&mut self, error: &E) -> ClassifiedResult {
        (self.classify)(error).into()
    }

    #[inline]
    fn of_value(&mut self, value: &T) -> Option<ClassifiedResult> {
        self.rules.of_value(value)
    }

    fn on_retry(&mut self, result: Result<&T, &E>, delay: Duration) {
        self.rules.on_retry(result, delay);
    }
}

/// Rules with a further classifier of values. If it returns `None`, the rules before it decide.
pub(super) struct WithValues<R, C> {
    pub(super) rules: R,
    pub(super) classify: C,
}

impl<T, E, R, C> Rules<T, E> for WithValues<R, C>
where
    R: Rules<T, E>,
    C: FnMut(&T) -> Option<Classification>,
{
    fn of_error(&mut self, error: &E) -> ClassifiedResult {
        self.rules.of_error(error)
    }

    #[inline]
    fn of_value(&mut self, value: &T) -> Option<ClassifiedResult> {
        match (self.classify)(value) {
            Some(classification) => Some(classification.into()),
            None => self.rules.of_value(value),
        }
    }

    fn on_retry(&mut self, result: Result<&T, &E>, delay: Duration) {
        self.rules.on_retry(result, delay);
    }
}

/// Rules with another function that is notified of retries. It returns `false` for results of the other kind, which
/// remain with the function before it.
pub(super) struct WithNotice<R, N> {
    pub(super) rules: R,
    pub(super) notify: N,
}

impl<T, E, R, N> Rules<T, E> for WithNotice<R, N>
where
    R: Rules<T, E>,
    N: FnMut(Result<&T, &E>, Duration) -> bool,
{
    fn of_error(&mut self, error: &E) -> ClassifiedResult {
        self.rules.of_error(error)
    }

    #[inline]
    fn of_value(&mut self, value: &T) -> Option<ClassifiedResult> {
        self.rules.of_value(value)
    }

    fn on_retry(&mut self, result: Result<&T, &E>, delay: Duration) {
        if !(self.notify)(result, delay) {
            self.rules.on_retry(result, delay);
        }
    }
}
