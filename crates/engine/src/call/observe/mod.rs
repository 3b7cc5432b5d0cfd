//! Observers, which are notified of each call's events.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use reattempt_core::guard::Refused;
use reattempt_core::{Proof, Rounded, StopReason, user_code};

use crate::call::report::{At, AttemptOutcome};

#[cfg(feature = "tracing")]
mod tracing;

#[cfg(feature = "tracing")]
pub use self::tracing::TracingObserver;

/// An event of a call.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub enum Event<'a> {
    /// An attempt failed. The outcome shows whether a retry might succeed.
    AttemptFailed {
        /// The attempt's number, from 1.
        attempt: u32,
        /// The outcome of the attempt.
        outcome: &'a AttemptOutcome,
        /// The name of the [endpoint][endpoints] that the attempt was sent to, if the client has a set of
        /// endpoints.
        ///
        /// [endpoints]: https://docs.rs/reattempt/latest/reattempt/endpoints/index.html
        endpoint: Option<&'a str>,
    },
    /// The call will be retried.
    WillRetry {
        /// The next attempt's number, from 2.
        attempt: u32,
        /// The delay before the next attempt.
        after: Duration,
        /// The proof that the failed attempt was not processed, if the request is repeated only because of it.
        proof: Option<Proof>,
    },
    /// The failed attempt was not processed. A new attempt with the same number replaces it immediately.
    WillReplace {
        /// The number of both attempts.
        attempt: u32,
        /// The proof that the failed attempt was not processed.
        proof: Proof,
    },
    /// The call failed and will not be retried.
    GaveUp {
        /// The number of attempts.
        attempts: u32,
        /// The reason why the call is not retried.
        reason: StopReason,
    },
    /// The call succeeded: the caller gets a response head. The body may still fail.
    Succeeded {
        /// The number of attempts.
        attempts: u32,
        /// The name of the [endpoint][endpoints] that responded, if the client has a set of endpoints.
        ///
        /// [endpoints]: https://docs.rs/reattempt/latest/reattempt/endpoints/index.html
        endpoint: Option<&'a str>,
    },
    /// An attempt is waiting for a guard.
    Waiting,
    /// A guard refused an attempt, so it was not sent.
    Refused {
        /// The refusal.
        refused: &'a Refused,
    },
    /// A fallback replaced the outcome of a failed call.
    FellBack,
    /// The response of a successful call failed after its head, too late for a retry. Bodies are only observed in a
    /// protocol whose responses end with a status. For HTTP, the response type is the client's own.
    BrokeOff {
        /// The number of attempts.
        attempts: u32,
        /// The code of the final status.
        code: u16,
    },
}

/// An observer of all events of all calls.
///
/// An observer runs on the task that polls the call, without any lock held, and must not block. If it panics, the panic
/// reaches the caller. It is not notified while the thread unwinds, because a second panic would abort the process.
/// Every `Fn(&str, &Event)` is an observer.
///
/// ```
/// use reattempt::RetryPolicy;
/// use reattempt::observe::Event;
///
/// let policy = RetryPolicy::http().observe(|destination, event| {
///     if let Event::GaveUp { attempts, reason } = event {
///         eprintln!("{destination}: gave up after {attempts} attempts: {reason}");
///     }
/// });
/// ```
pub trait Observer: Send + Sync {
    /// Handles an event of a call to `destination`, the key of budgets and guards. By default, the destination is the
    /// host and port, with the scheme unless that is http. It is empty if the request has no host.
    fn on_event(&self, destination: &str, event: &Event<'_>);
}

impl<F: Fn(&str, &Event<'_>) + Send + Sync> Observer for F {
    fn on_event(&self, destination: &str, event: &Event<'_>) {
        self(destination, event);
    }
}

/// Notifies an observer of an event, unless the thread unwinds.
pub fn notify(observer: &dyn Observer, destination: &str, event: &Event<'_>) {
    user_code::notify(|| observer.on_event(destination, event));
}

/// Adds an observer, which is notified after the existing ones.
pub fn add_observer(observers: &mut Option<Arc<dyn Observer>>, observer: impl Observer + 'static) {
    *observers = Some(match observers.take() {
        None => Arc::new(observer),
        Some(first) => Arc::new(move |destination: &str, event: &Event<'_>| {
            notify(&*first, destination, event);
            notify(&observer, destination, event);
        }),
    });
}

impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::AttemptFailed { attempt, outcome, endpoint } => {
                write!(f, "attempt {attempt}{}: {outcome}", At(*endpoint))
            }
            Event::WillRetry { attempt, after, proof: None } => {
                write!(f, "attempt {attempt} in {}", Rounded(*after))
            }
            Event::WillRetry { attempt, after, proof: Some(proof) } => {
                write!(f, "attempt {attempt} in {}, because {proof}", Rounded(*after))
            }
            Event::WillReplace { attempt, proof } => write!(f, "attempt {attempt} is replaced, because {proof}"),
            Event::BrokeOff { attempts, code } => {
                write!(f, "the answer to attempt {attempts} broke off with code {code}")
            }
            Event::GaveUp { attempts: 0, reason } => write!(f, "not sent: {reason}"),
            // After a permanent failure, the call returns that response, so nothing was given up.
            Event::GaveUp { attempts, reason: reason @ StopReason::Permanent } => {
                write!(f, "failed on attempt {attempts}: {reason}")
            }
            Event::GaveUp { attempts, reason } => {
                let s = if *attempts == 1 { "" } else { "s" };
                write!(f, "gave up after {attempts} attempt{s}: {reason}")
            }
            Event::FellBack => f.write_str("a fallback was used"),
            Event::Waiting => f.write_str("an attempt waits for a guard"),
            Event::Refused { refused } => write!(f, "{refused}"),
            Event::Succeeded { attempts, endpoint } => {
                write!(f, "succeeded on attempt {attempts}{}", At(*endpoint))
            }
        }
    }
}
