//! The schedule of one call, from the policy, the call's options or its method.

use std::time::Duration;

use reattempt_core::{CallSchedule, Delays, Failure, NextRetry, Random, Schedule, SentAt, SharedSchedule};
use reattempt_schedule_exponential::ExponentialDelays;

use super::context::CallContext;
use crate::call::method::MethodOverrides;
use crate::call::options::CallOptions;

/// The schedule of one call.
pub(super) enum ChosenSchedule<'a, T> {
    Policy(&'a T),
    Own(&'a SharedSchedule),
    /// The method's schedule. Any shared state belongs to the policy's schedule.
    Method(&'a T, &'a dyn MethodOverrides),
}

/// The delays of one call.
pub(super) enum CallDelays<D> {
    Policy(D),
    Own(<SharedSchedule as Schedule>::Delays),
    Method(ExponentialDelays),
}

impl<'a, T> ChosenSchedule<'a, T> {
    pub(super) fn of(policy: &'a T, context: &'a CallContext) -> Self {
        let options = context.options.as_ref();
        match options.and_then(CallOptions::get_schedule) {
            Some(own) => Self::Own(own),
            None => match options.and_then(CallOptions::method) {
                Some(method) => Self::Method(policy, method),
                None => Self::Policy(policy),
            },
        }
    }
}

impl<T: Schedule> CallSchedule for ChosenSchedule<'_, T> {
    type Delays = CallDelays<T::Delays>;

    fn fresh_delays(&self) -> Self::Delays {
        match self {
            Self::Policy(policy) => CallDelays::Policy(policy.delays()),
            Self::Own(own) => CallDelays::Own(own.delays()),
            Self::Method(policy, method) => match method.delays() {
                Some(delays) => CallDelays::Method(delays),
                None => CallDelays::Policy(policy.delays()),
            },
        }
    }

    fn on_attempt_failure(&self, sent_at: SentAt, failure: &Failure, random: &mut dyn Random) {
        match self {
            Self::Policy(policy) | Self::Method(policy, _) => {
                policy.on_failure(sent_at, failure, random);
            }
            Self::Own(own) => own.on_failure(sent_at, failure, random),
        }
    }
}

impl<D: Delays> Delays for CallDelays<D> {
    fn next_delay(&mut self, retry: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        match self {
            Self::Policy(delays) => delays.next_delay(retry, random),
            Self::Own(delays) => delays.next_delay(retry, random),
            Self::Method(delays) => delays.next_delay(retry, random),
        }
    }

    fn is_shared(&self) -> bool {
        match self {
            Self::Policy(delays) => delays.is_shared(),
            Self::Own(delays) => delays.is_shared(),
            Self::Method(delays) => delays.is_shared(),
        }
    }
}
