//! The pairs of settings that contradict each other.
//!
//! Every `validate` and `checked` of a client, the reader of policy files and `lab check` ask this one list. What a
//! schedule knows of its limits, and a guard of its own settings, stays in their `validate`, which the same callers
//! ask.

use alloc::format;
use alloc::vec::Vec;
use core::time::Duration;

use crate::{ConfigError, Limits, Warning};

/// The settings of one client that can contradict each other; `None` if it has no such setting.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default)]
pub struct Combined {
    pub limits: Option<Limits>,
    /// The retries that the budget grants a call while no call succeeds.
    pub granted_retries: Option<u32>,
    /// The limit of each attempt.
    pub attempt_timeout: Option<Duration>,
    /// The retry policy's own limit of each attempt, in a stack that has one, too.
    pub policy_attempt_timeout: Option<Duration>,
    /// The limit of each attempt at an endpoint, in a stack that has one, too.
    pub endpoint_attempt_timeout: Option<Duration>,
    /// The fixed delay before a hedge.
    pub hedge_delay: Option<Duration>,
    /// The time over which a breaker counts.
    pub breaker_interval: Option<Duration>,
    /// The limit of the whole call.
    pub total_time: Option<Duration>,
}

/// A setting that another one contradicts.
#[doc(hidden)]
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contradiction {
    /// The setting, its value, and the values without a contradiction.
    pub warning: Warning,
    /// `true` if one of the two settings never has an effect, so that `checked` refuses it.
    pub is_error: bool,
}

impl Combined {
    /// Returns all contradictions, the errors first.
    pub fn contradictions(&self) -> Vec<Contradiction> {
        let Self { limits, attempt_timeout, total_time, .. } = *self;
        let default = Limits::default().max_elapsed;
        let max_elapsed = limits.and_then(|limits| limits.max_elapsed);
        let errors = [
            not_below("attempt_timeout", attempt_timeout, total_time, "below `total_time`"),
            not_below("attempt_timeout", attempt_timeout.filter(Duration::is_zero), Some(Duration::ZERO), "above 0"),
            not_below(
                "RetryPolicy::attempt_timeout",
                self.policy_attempt_timeout,
                Some(Duration::ZERO),
                "unset: `attempt_timeout` of the stack stands inside the guards",
            ),
            not_below("HedgePolicy::delay", self.hedge_delay, attempt_timeout, "below `attempt_timeout`"),
            not_below(
                "Endpoints::attempt_timeout",
                self.endpoint_attempt_timeout,
                attempt_timeout,
                "below `attempt_timeout` of the stack, which ends the attempt before",
            ),
            self.short_interval(),
        ];
        let warnings = [
            not_below(
                "attempt_timeout",
                attempt_timeout.filter(|timeout| !timeout.is_zero()),
                max_elapsed,
                "below `max_elapsed`, after which no attempt starts",
            ),
            not_below(
                "max_elapsed",
                max_elapsed.filter(|elapsed| Some(*elapsed) != default && Some(*elapsed) != total_time),
                total_time,
                "at most `total_time`, which ends the call before",
            ),
            self.unpaid_attempts(),
        ];
        let of = |is_error| move |warning| Contradiction { warning, is_error };
        let errors = errors.into_iter().flatten().map(of(true));
        errors.chain(warnings.into_iter().flatten().map(of(false))).collect()
    }

    /// Returns a warning for each contradiction.
    pub fn validate(&self) -> Vec<Warning> {
        self.contradictions().into_iter().map(|contradiction| contradiction.warning).collect()
    }

    /// Returns the first contradiction that leaves a setting without effect as an error.
    pub fn check(&self) -> Result<(), ConfigError> {
        let first = self.contradictions().into_iter().find(|contradiction| contradiction.is_error);
        first.map_or(Ok(()), |Contradiction { warning, .. }| {
            Err(ConfigError::new(warning.field(), warning.value(), warning.recommended()))
        })
    }

    /// Finds a breaker that would forget attempts in flight.
    fn short_interval(&self) -> Option<Warning> {
        let (interval, attempt) = self.breaker_interval.zip(self.attempt_timeout)?;
        (interval < attempt.saturating_mul(2)).then(|| {
            Warning::new("CircuitBreaker::interval", format_args!("{interval:?}"), "at least twice `attempt_timeout`")
        })
    }

    /// Finds attempts for which the budget never pays while the server is down.
    fn unpaid_attempts(&self) -> Option<Warning> {
        let (limits, granted) = self.limits.zip(self.granted_retries)?;
        let (attempts, granted) = (limits.max_attempts, granted.saturating_add(1));
        let value = format!("{attempts}, and the budget grants {granted} while no call succeeds");
        (attempts > granted && attempts != u32::MAX)
            .then(|| Warning::new("max_attempts", value, "as many as the budget grants"))
    }
}

/// Returns a warning for a time that is not below its bound.
fn not_below(
    field: &'static str,
    time: Option<Duration>,
    bound: Option<Duration>,
    recommended: &'static str,
) -> Option<Warning> {
    let (time, bound) = time.zip(bound)?;
    (time >= bound).then(|| Warning::new(field, format_args!("{time:?}"), recommended))
}
