//! An observer that writes `tracing` events.

use ::tracing::{debug, trace, warn};
use reattempt_core::{Proof, Rounded, StopReason};

use crate::call::observe::{Event, Observer};
#[cfg(feature = "http")]
use reattempt_control::{BreakerState, StateChange};

/// An observer that writes each event to `tracing`, with the target `reattempt`.
///
/// | event | level |
/// |---|---|
/// | [`GaveUp`](Event::GaveUp), except after a permanent failure | WARN |
/// | [`Succeeded`](Event::Succeeded) | TRACE |
/// | all others | DEBUG |
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingObserver;

#[cfg(feature = "http")]
impl TracingObserver {
    /// Emits an event for a circuit breaker's state change, at WARN if the breaker opens, otherwise at DEBUG. Pass this
    /// function to [`CircuitBreaker::on_state_change`][on_state_change].
    ///
    /// ```
    /// use reattempt::guard::CircuitBreaker;
    /// use reattempt::observe::TracingObserver;
    ///
    /// let breaker = CircuitBreaker::rate().on_state_change(TracingObserver::on_state_change);
    /// ```
    ///
    /// [on_state_change]: https://docs.rs/reattempt/latest/reattempt/guard/struct.CircuitBreaker.html#method.on_state_change
    pub fn on_state_change(change: &StateChange) {
        let StateChange { name, destination, from, to, .. } = change;
        let (name, destination): (&str, &str) = (name, destination);
        match to {
            BreakerState::Open | BreakerState::ForcedOpen => {
                warn!(target: "reattempt", destination, name, %from, %to, "a circuit breaker opened");
            }
            _ => {
                debug!(target: "reattempt", destination, name, %from, %to, "a circuit breaker changed");
            }
        }
    }
}

impl Observer for TracingObserver {
    fn on_event(&self, destination: &str, event: &Event<'_>) {
        match event {
            Event::AttemptFailed { attempt, outcome, endpoint } => {
                debug!(target: "reattempt", destination, attempt, endpoint, %outcome, "attempt failed");
            }
            Event::WillRetry { attempt, after, proof } => {
                let proof = proof.map(Proof::name);
                debug!(target: "reattempt", destination, attempt, after = %Rounded(*after), proof, "will retry");
            }
            Event::WillReplace { attempt, proof } => {
                debug!(target: "reattempt", destination, attempt, proof = proof.name(), "will replace the attempt");
            }
            Event::FellBack => debug!(target: "reattempt", destination, "a fallback was used"),
            Event::Waiting => {
                debug!(target: "reattempt", destination, "an attempt waits for a guard")
            }
            Event::Refused { refused } => {
                debug!(target: "reattempt", destination, %refused, "a guard refused an attempt");
            }
            Event::BrokeOff { attempts, code } => {
                debug!(target: "reattempt", destination, attempts, code, "the answer broke off");
            }
            // After a permanent failure, the call returns that response, so nothing was given up.
            Event::GaveUp { attempts, reason: reason @ StopReason::Permanent } => {
                debug!(target: "reattempt", destination, attempts, %reason, "failed");
            }
            Event::GaveUp { attempts: 0, reason } => {
                warn!(target: "reattempt", destination, %reason, "not sent");
            }
            Event::GaveUp { attempts, reason } => {
                warn!(target: "reattempt", destination, attempts, %reason, "gave up");
            }
            Event::Succeeded { attempts, endpoint } => {
                trace!(target: "reattempt", destination, attempts, endpoint, "succeeded");
            }
        }
    }
}
