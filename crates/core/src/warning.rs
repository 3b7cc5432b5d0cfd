//! The recommended ranges of settings, and the warning for a value outside its range.

use alloc::string::{String, ToString};
use core::fmt;
use core::time::Duration;

/// The recommended range of a setting. Values outside it are allowed, but often a mistake.
///
/// The `validate` methods of policies, schedules, budgets and guards check these ranges.
///
/// ```
/// use reattempt::error::Recommended;
/// # mod reattempt { pub use reattempt_core as error; }
///
/// assert!(Recommended::FACTOR.number("factor", 2.0).is_none());
/// let warning = Recommended::FACTOR.number("factor", 10.0).expect("outside");
/// assert_eq!(warning.to_string(), "`factor` is 10 (recommended: 1.5 to 3, usually 2)");
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Recommended {
    least: f64,
    most: f64,
    text: &'static str,
}

/// Times are in seconds; ratios are fractions.
impl Recommended {
    /// The number of attempts per call.
    pub const ATTEMPTS: Self = Self::new(2.0, 10.0, "2 to 10, usually 3 to 5");
    /// The first interval of a schedule.
    pub const BASE: Self = Self::new(0.010, 1.0, "10 ms to 1 s, usually 100 ms");
    /// The longest interval of a schedule.
    pub const CAP: Self = Self::new(1.0, 60.0, "1 s to 60 s, usually 5 s");
    /// The total time of a call.
    pub const DEADLINE: Self = Self::new(1.0, 3600.0, "1 s to 1 h, usually 5 s to 30 s");
    /// The growth factor of an interval.
    pub const FACTOR: Self = Self::new(1.5, 3.0, "1.5 to 3, usually 2");
    /// Retries per success.
    pub const BUDGET: Self = Self::new(0.01, 0.5, "0.01 to 0.5, usually 0.1");
    /// The size of a burst, divided by its rate per second.
    pub const BURST: Self = Self::new(1.0, 5.0, "1 to 5, usually 2");
    /// The failure ratio that opens a breaker.
    pub const FAILURE_RATIO: Self = Self::new(0.3, 0.7, "0.3 to 0.7, usually 0.5");
    /// The window over which a breaker counts outcomes.
    pub const WINDOW: Self = Self::new(30.0, 300.0, "30 s to 5 min, usually 60 s");
    /// The time for which a breaker stays open.
    pub const OPEN_TIME: Self = Self::new(10.0, 120.0, "10 s to 2 min, usually 30 s");

    const fn new(least: f64, most: f64, text: &'static str) -> Self {
        Self { least, most, text }
    }

    /// Returns a warning if the value of `field` is outside the range.
    pub fn number(&self, field: &'static str, value: f64) -> Option<Warning> {
        self.warning(field, value, &value)
    }

    /// Returns a warning if the time in `field` is outside the range.
    pub fn time(&self, field: &'static str, value: Duration) -> Option<Warning> {
        self.warning(field, value.as_secs_f64(), &format_args!("{value:?}"))
    }

    /// Returns a warning if the burst in `field` is too small or too large for its rate.
    pub fn burst(field: &'static str, burst: f64, per_second: f64) -> Option<Warning> {
        let seconds = burst / per_second;
        Self::BURST.warning(field, seconds, &format_args!("{seconds} times the rate"))
    }

    fn warning(&self, field: &'static str, value: f64, shown: &dyn fmt::Display) -> Option<Warning> {
        let outside = !(self.least..=self.most).contains(&value);
        outside.then(|| Warning::new(field, shown, self.text))
    }
}

/// A setting whose value is allowed, but unusual or without effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    field: &'static str,
    value: String,
    recommended: &'static str,
}

impl Warning {
    /// Creates a warning for the `value` of `field`.
    pub fn new(field: &'static str, value: impl fmt::Display, recommended: &'static str) -> Self {
        Self { field, value: value.to_string(), recommended }
    }

    /// Returns the name of the setting.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the value as text.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the recommended range as text: "1.5 to 3, usually 2".
    pub fn recommended(&self) -> &'static str {
        self.recommended
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { field, value, recommended } = self;
        write!(f, "`{field}` is {value} (recommended: {recommended})")
    }
}
