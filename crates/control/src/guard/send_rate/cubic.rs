//! A destination's rate under the rule of AWS's adaptive retry mode, as plain values.

use std::time::Duration;

/// The factor applied after a refusal.
const BETA: f64 = 0.7;
/// The growth coefficient of the cubic.
const SCALE: f64 = 0.4;
/// The weight of the latest measurement in the average.
const SMOOTHING: f64 = 0.8;
/// The lowest rate.
const LEAST: f64 = 0.5;
/// The time over which calls are counted.
const HALF_SECOND: Duration = Duration::from_millis(500);

/// The state of a destination's rate. All rates are per second.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Cubic {
    /// The smoothed rate of outcomes, or `None` during the first half second.
    measured: Option<f64>,
    /// The number of the current half second, and the outcomes since it began.
    count: f64,
    half_second: Option<u64>,
    /// `None` until the first refusal.
    active: Option<Active>,
    /// The latest time seen.
    pub(crate) now: Duration,
}

/// The effect of a call's outcome on the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum News {
    Refused,
    Served,
    /// No effect except on the measured rate.
    None,
}

/// The state after a refusal.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Active {
    rate: f64,
    /// The rate before the last refusal. The cubic returns to it and then probes beyond it.
    ceiling: f64,
    /// The time of the last refusal.
    since: Duration,
}

impl Cubic {
    /// Records a call's outcome. Returns the new rate, if it changed.
    ///
    /// A refusal of a call that was sent before the last cut has no effect, because the cut already reacted to that
    /// overload.
    pub(crate) fn record(&mut self, news: News, sent: Duration, now: Duration) -> Option<f64> {
        self.now = self.now.max(now);
        self.measure();
        let measured = self.measured();
        let rate = match (&mut self.active, news) {
            (_, News::None) | (None, News::Served) => return None,
            (Some(active), News::Refused) if sent < active.since => return None,
            (Some(active), News::Served) => active.recovered(self.now),
            (active, News::Refused) => {
                let ceiling = active.map_or(measured, |active| active.rate.min(measured));
                *active = Some(Active { rate: ceiling, ceiling, since: self.now });
                ceiling * BETA
            }
        };
        let rate = rate.min(2.0 * measured).max(LEAST);
        self.active.as_mut()?.rate = rate;
        Some(rate)
    }

    /// Counts an outcome, and updates the smoothed rate at the end of each half second.
    fn measure(&mut self) {
        let number = u64::try_from(self.now.as_nanos() / HALF_SECOND.as_nanos()).unwrap_or(u64::MAX);
        let since = *self.half_second.get_or_insert(number);
        self.count += 1.0;
        if number > since {
            #[allow(clippy::cast_precision_loss, reason = "a number of half seconds")]
            let rate = self.count / (HALF_SECOND.as_secs_f64() * (number - since) as f64);
            let before = self.measured.unwrap_or(0.0);
            self.measured = Some(rate * SMOOTHING + before * (1.0 - SMOOTHING));
            self.count = 0.0;
            self.half_second = Some(number);
        }
    }

    /// Returns the measured rate. During the first half second, it is estimated as if that were over.
    fn measured(&self) -> f64 {
        self.measured.unwrap_or(self.count / HALF_SECOND.as_secs_f64())
    }
}

impl Active {
    /// Returns the cubic's rate: 0.7 of the ceiling at the refusal, rising to the ceiling and later above it.
    fn recovered(&self, now: Duration) -> f64 {
        let pause = (self.ceiling * (1.0 - BETA) / SCALE).cbrt();
        let since = now.saturating_sub(self.since).as_secs_f64();
        SCALE * (since - pause).powi(3) + self.ceiling
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Returns a state at 5 s with a rate of 10 per second.
    fn at_ten() -> Cubic {
        let active = Some(Active { rate: 10.0, ceiling: 10.0, since: seconds(5) });
        let (measured, half_second) = (Some(1e6), Some(u64::MAX));
        Cubic { active, measured, half_second, ..Cubic::default() }
    }

    /// The test vectors are shared by all of AWS's clients.
    #[test]
    fn successes_follow_the_cubic() {
        let mut cubic = at_ten();
        for (second, expected) in [
            (5, 7.0),
            (6, 9.648_936),
            (7, 10.000_031),
            (8, 10.453_285),
            (9, 13.408_697),
            (10, 21.266_268),
            (11, 36.425_999),
        ] {
            let rate = cubic.record(News::Served, seconds(5), seconds(second)).unwrap();
            assert!((rate - expected).abs() < 1e-5, "{second}: {rate}");
        }
    }

    #[test]
    fn refusals_lower_the_ceiling() {
        let mut cubic = at_ten();
        for (news, second, expected) in [
            (News::Served, 5, 7.0),
            (News::Served, 6, 9.648_936),
            (News::Refused, 7, 6.754_255),
            (News::Refused, 8, 4.727_979),
            (News::Served, 9, 6.606_547),
            (News::Served, 10, 6.763_280),
        ] {
            let rate = cubic.record(news, seconds(second), seconds(second)).unwrap();
            assert!((rate - expected).abs() < 1e-5, "{second}: {rate}");
        }
    }
}
