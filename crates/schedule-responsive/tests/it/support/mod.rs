//! Calls of a service that refuses or accepts them.

use core::time::Duration;

use reattempt_core::{Failure, FailureKind, Random, Schedule};
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::ms;

pub(crate) const THROTTLED: Failure = Failure::new(FailureKind::Throttled);

/// Records a throttled call; returns the interval after it.
pub(crate) fn refuse(pace: &Responsive, random: &mut dyn Random) -> Duration {
    pace.on_failure(pace.on_send(), &THROTTLED, random);
    pace.interval()
}

/// Records a successful call; returns the interval after it.
pub(crate) fn accept(pace: &Responsive, random: &mut dyn Random) -> Duration {
    pace.on_success(pace.on_send(), random);
    pace.interval()
}

/// The settings of the reference's check: 1 ms, up 1.5, down 0.6, no randomisation, threshold 5.
pub(crate) fn of_the_check() -> Responsive {
    Responsive::new().initial(ms(1)).down(0.6).randomisation(0.0).threshold(5)
}
