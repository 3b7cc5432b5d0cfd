//! An observer that writes `tracing` events.

use ::tracing::{debug, trace, warn};

use crate::call::observe::{Event, Observer};

/// Writes each event to `tracing` under the target `reattempt`: giving up at WARN, failed attempts
/// and retries at DEBUG, successes at TRACE.
#[derive(Debug, Clone, Copy, Default)]
pub struct TracingObserver;

impl Observer for TracingObserver {
    fn on_event(&self, destination: &str, event: &Event<'_>) {
        match event {
            Event::AttemptFailed { attempt, outcome } => {
                debug!(target: "reattempt", destination, attempt, %outcome, "attempt failed");
            }
            Event::WillRetry { attempt, after } => {
                debug!(target: "reattempt", destination, attempt, ?after, "will retry");
            }
            Event::WillReplace { attempt } => {
                debug!(target: "reattempt", destination, attempt, "will replace the attempt");
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
            // A permanent failure is the response itself. It is no fault of the retries.
            Event::GaveUp { attempts, reason: reason @ reattempt_core::StopReason::Permanent } => {
                debug!(target: "reattempt", destination, attempts, %reason, "gave up");
            }
            Event::GaveUp { attempts, reason } => {
                warn!(target: "reattempt", destination, attempts, %reason, "gave up");
            }
            Event::Succeeded { attempts } => {
                trace!(target: "reattempt", destination, attempts, "succeeded");
            }
        }
    }
}
