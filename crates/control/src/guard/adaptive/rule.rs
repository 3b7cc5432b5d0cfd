//! The rules that adjust an adaptive limit.

use super::window::LimitWindow;

/// A rule that adjusts an adaptive limit, once per window.
///
/// Each destination has its own clone of the rule, so a rule may have state. The caller applies the bounds, and ignores
/// an increase if less than half of the current limit was in use.
///
/// ```
/// # use reattempt_control::{AdaptiveLimit, LimitRule, LimitWindow};
///
/// /// Halves the limit while calls are dropped.
/// #[derive(Clone)]
/// struct Halve;
///
/// impl LimitRule for Halve {
///     fn next_limit(&mut self, limit: f64, window: &LimitWindow) -> f64 {
///         if window.dropped > 0 { limit / 2.0 } else { limit + 1.0 }
///     }
/// }
///
/// let limit = AdaptiveLimit::new(Halve);
/// ```
pub trait LimitRule: Clone + Send + Sync + 'static {
    /// Returns the limit to use after `window`, during which `limit` applied. A value that is not finite is ignored.
    fn next_limit(&mut self, limit: f64, window: &LimitWindow) -> f64;
}

/// Additive increase, multiplicative decrease: plus one after a window without dropped calls, otherwise minus 10 %.
///
/// The rule ignores latencies, so it suits servers that refuse early, or whose latency varies for reasons other than
/// load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aimd {
    backoff: f64,
}

impl Aimd {
    /// Creates the rule with a factor of 0.9.
    pub const fn new() -> Self {
        Self { backoff: 0.9 }
    }

    /// Sets the factor applied after a window with dropped calls. Default: 0.9.
    ///
    /// The value is clamped to 0.5 to 0.999, and NaN is treated as 0.5.
    pub const fn backoff(self, factor: f64) -> Self {
        Self { backoff: factor.max(0.5).min(0.999) }
    }
}

impl Default for Aimd {
    fn default() -> Self {
        Self::new()
    }
}

impl LimitRule for Aimd {
    fn next_limit(&mut self, limit: f64, window: &LimitWindow) -> f64 {
        if window.dropped > 0 { limit * self.backoff } else { limit + 1.0 }
    }
}

/// The number of windows between baseline measurements, each of which halves the limit for one window.
const RENEWAL: u32 = 30;

/// The TCP Vegas rule. It estimates the server's queue from how far the latency exceeds a baseline, and keeps that
/// queue short.
///
/// The estimate is `limit · (1 − baseline / latency)` queued calls. With `s = max(1, log₁₀ limit)`:
///
/// | queued calls | change of the limit |
/// |---|---|
/// | at most `s` | + `6 · s` |
/// | below `3 · s` | + `s` |
/// | above `6 · s`, or calls were dropped | − `s` |
///
/// The latency is a window's 90th percentile, and the baseline is the lowest latency so far. After 30 windows, the
/// baseline is measured again as soon as a window uses half of the limit. The limit is halved for one window, and that
/// window's latency becomes the new baseline. A baseline that was measured under load, or when the server was faster,
/// is thus replaced.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Vegas {
    /// In seconds.
    base: Option<f64>,
    /// The number of windows since the baseline was last measured.
    age: u32,
    /// The limit to restore after a window with half of it.
    before: Option<f64>,
}

impl Vegas {
    /// Creates the rule without a baseline.
    pub const fn new() -> Self {
        Self { base: None, age: 0, before: None }
    }
}

impl LimitRule for Vegas {
    fn next_limit(&mut self, limit: f64, window: &LimitWindow) -> f64 {
        let step = limit.log10().max(1.0);
        let before = self.before.take();
        self.age += 1;
        if window.dropped > 0 {
            return before.unwrap_or(limit) - step;
        }
        let Some(current) = window.latency.map(|latency| latency.as_secs_f64()) else {
            return before.unwrap_or(limit);
        };
        if let Some(before) = before {
            self.base = Some(current);
            return before;
        }
        if self.age >= RENEWAL && is_in_use(limit, window) {
            self.age = 0;
            self.before = Some(limit);
            return limit / 2.0;
        }
        let base = self.base.map_or(current, |base| base.min(current));
        self.base = Some(base);
        let queue = limit * (1.0 - base / current);
        if queue <= step {
            limit + 6.0 * step
        } else if queue < 3.0 * step {
            limit + step
        } else if queue > 6.0 * step {
            limit - step
        } else {
            limit
        }
    }
}

/// The number of windows in the long-term average, and in its warm-up.
const LONG: f64 = 600.0;
const WARM_UP: f64 = 10.0;
/// The number of calls that may queue while the latency is steady.
const HEADROOM: f64 = 4.0;
/// The weight of a new limit.
const SMOOTHING: f64 = 0.2;

/// Netflix's Gradient2 rule. The limit follows the ratio of a long-term latency average to the current latency.
///
/// In each window the limit moves a fifth of the way to `limit · gradient + 4`. The gradient is `long / current`,
/// clamped to 0.5 to 1. The long-term average covers 600 windows. While it is more than twice the current latency, it
/// shrinks faster, so that a past overload is forgotten sooner.
///
/// Unlike the original, the rule takes dropped calls into account. In a window with dropped calls, the gradient is at
/// most the share of served calls (at least 0.5), and the 4 is not added.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Gradient2 {
    /// In seconds.
    long: f64,
    windows: f64,
}

impl Gradient2 {
    /// Creates the rule without any latency history.
    pub const fn new() -> Self {
        Self { long: 0.0, windows: 0.0 }
    }

    /// Returns the ratio of the long-term average to the current latency.
    fn ratio(&mut self, current: f64) -> f64 {
        self.windows += 1.0;
        let weight = if self.windows <= WARM_UP { 1.0 / self.windows } else { 2.0 / (LONG + 1.0) };
        self.long += (current - self.long) * weight;
        let ratio = self.long / current;
        if ratio > 2.0 {
            self.long *= 0.9;
        }
        ratio
    }
}

impl LimitRule for Gradient2 {
    fn next_limit(&mut self, limit: f64, window: &LimitWindow) -> f64 {
        let current = window.latency.map(|latency| latency.as_secs_f64());
        let steady = current.map_or(1.0, |current| self.ratio(current).min(1.0));
        let all = f64::from(window.served) + f64::from(window.dropped);
        let kept = if all > 0.0 { f64::from(window.served) / all } else { 1.0 };
        let headroom = if window.dropped > 0 { 0.0 } else { HEADROOM };
        let aim = limit * steady.min(kept).max(0.5) + headroom;
        limit + (aim - limit) * SMOOTHING
    }
}

/// Returns `true` if at least half of the limit was in use.
pub(super) fn is_in_use(limit: f64, window: &LimitWindow) -> bool {
    f64::from(window.in_flight) * 2.0 >= limit
}
