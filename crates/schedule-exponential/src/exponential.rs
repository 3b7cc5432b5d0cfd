//! Exponential backoff, in which the interval grows with each retry, unaffected by jitter.

use alloc::vec::Vec;
use core::fmt;
use core::time::Duration;

use reattempt_core::{Delays, Jitter, Limits, NextRetry, Random, Recommended, Schedule, Warning};

use crate::Decorrelated;
use crate::growth::{Growth, at_least_some};

/// The default cap, unless the base is longer.
const DEFAULT_CAP: Duration = Duration::from_secs(5);

/// The longest interval, in nanoseconds, that can be doubled within 64 bits (292 years).
const LONGEST_DOUBLING: u64 = u64::MAX / 2;

/// Exponential backoff: delays that grow by a factor up to a cap, with jitter.
///
/// Before retry `n`, counting from 0, the *interval* is `min(cap, base · factorⁿ)`. The delay is drawn from a range
/// around or below the interval, depending on the kind of jitter.
///
/// | setting | default | reason |
/// |---|---|---|
/// | jitter and base of [`default`](Self::default) | full jitter, 100 ms | the default of all HTTP policies |
/// | [`factor`](Self::factor) | 2 | doubling is customary |
/// | cap, set with [`max_delay`](Self::max_delay) | 5 s, or the base if that is longer | callers rarely wait longer |
///
/// A base of zero is treated as 1 ms. For retries without a delay, use `Constant::immediate()`.
///
/// Intervals are whole nanoseconds. They are exact for integer factors until `factorⁿ` exceeds 53 bits, and always for
/// factor 2.
///
/// ```
/// use core::time::Duration;
/// # use reattempt_schedule_exponential::Exponential;
///
/// // 500 ms ± 50 %, 750 ms ± 50 %, … 60 s ± 50 %
/// let schedule = Exponential::symmetric(Duration::from_millis(500), 0.5)
///     .factor(1.5)
///     .max_delay(Duration::from_secs(60));
/// ```
#[doc(alias = "ExponentialBackoff")]
#[derive(Clone, Copy, PartialEq)]
pub struct Exponential {
    /// The state of a new call, which includes all settings.
    fresh: State,
}

impl Exponential {
    /// Creates a schedule without jitter, so each delay equals the interval.
    ///
    /// Clients that fail at the same time then retry at the same time. Use it for a single client, or if delays must be
    /// predictable.
    pub fn no_jitter(base: Duration) -> Self {
        Self::new(base, Jitter::none())
    }

    /// Creates a schedule with delays from zero to the interval. This spreads clients over the whole interval.
    #[doc(alias = "jitter")]
    #[inline]
    pub fn full_jitter(base: Duration) -> Self {
        Self::new(base, Jitter::full())
    }

    /// Creates a schedule with delays from half the interval to the interval. No retry is sent immediately.
    pub fn equal_jitter(base: Duration) -> Self {
        Self::new(base, Jitter::equal())
    }

    /// Creates a schedule with delays from `interval · (1 − r)` to `interval · (1 + r)`, where `r` is `randomisation`.
    ///
    /// A delay may exceed the cap by the factor `1 + r`, unless [`clamp_jitter`](Self::clamp_jitter) is set.
    ///
    /// `randomisation` is clamped to 0 to 1, and NaN is treated as 0.
    pub fn symmetric(base: Duration, randomisation: f64) -> Self {
        Self::new(base, Jitter::symmetric(randomisation))
    }

    /// Creates a [`Decorrelated`] schedule, with delays from the base to three times the previous delay.
    pub fn decorrelated(base: Duration) -> Decorrelated {
        let base = at_least_some(base);
        Decorrelated::new(base, default_cap(base))
    }

    /// Creates a [`full_jitter`](Self::full_jitter) schedule with a base in milliseconds.
    #[inline]
    pub fn from_millis(base: u64) -> Self {
        Self::full_jitter(Duration::from_millis(base))
    }

    #[inline]
    fn new(base: Duration, jitter: Jitter) -> Self {
        let base = at_least_some(base);
        let growth = Growth::new(base, 2.0, default_cap(base));
        Self::of(General { growth, jitter, clamp_jitter: false })
    }

    #[inline]
    fn of(settings: General) -> Self {
        let doubling = DoublingFull::of(&settings);
        Self { fresh: doubling.map_or(State::General(settings), State::DoublingFull) }
    }

    #[inline]
    fn settings(&self) -> General {
        match self.fresh {
            State::DoublingFull(doubling) => doubling.settings(),
            State::General(settings) => settings,
        }
    }

    /// Sets the growth factor of the interval. Default: 2. Recommended: 1.5 to 3. Below 1, intervals shrink.
    ///
    /// The value is clamped to finite numbers above 0. NaN is treated as 1, which keeps the interval constant.
    pub fn factor(self, factor: f64) -> Self {
        let mut settings = self.settings();
        settings.growth.factor = if factor.is_nan() { 1.0 } else { factor.clamp(f64::MIN_POSITIVE, f64::MAX) };
        Self::of(settings)
    }

    /// Sets the cap, which is the longest interval. Default: 5 s, or the base if that is longer. Recommended: 1 s to 1
    /// min. A cap of zero is treated as 1 ms, like a base of zero.
    ///
    /// The cap is applied after the growth and before the jitter. A base above the cap is lowered to it, as with
    /// `maxBackoff` in gRPC's service config.
    #[doc(alias = "cap")]
    #[inline]
    pub fn max_delay(self, longest: Duration) -> Self {
        self.capped(at_least_some(longest))
    }

    /// Removes the cap. Intervals grow up to [`Duration::MAX`].
    pub fn no_max_delay(self) -> Self {
        self.capped(Duration::MAX)
    }

    #[inline]
    fn capped(self, cap: Duration) -> Self {
        let mut settings = self.settings();
        settings.growth.cap = cap;
        Self::of(settings)
    }

    /// Also applies the cap to the delay after jitter. This affects only [`symmetric`](Self::symmetric) jitter.
    ///
    /// The range is clamped before the draw, so delays do not cluster at the cap. Their mean is then below the
    /// interval.
    pub fn clamp_jitter(self) -> Self {
        Self::of(General { clamp_jitter: true, ..self.settings() })
    }
}

impl Default for Exponential {
    fn default() -> Self {
        Self::full_jitter(Duration::from_millis(100))
    }
}

impl fmt::Debug for Exponential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let General { growth, jitter, clamp_jitter } = &self.settings();
        f.debug_struct("Exponential")
            .field("base", &growth.base)
            .field("factor", &growth.factor)
            .field("cap", &(growth.cap < Duration::MAX).then_some(growth.cap))
            .field("jitter", jitter)
            .field("clamp_jitter", clamp_jitter)
            .finish()
    }
}

impl Schedule for Exponential {
    type Delays = ExponentialDelays;

    #[inline]
    fn delays(&self) -> ExponentialDelays {
        ExponentialDelays(self.fresh)
    }

    #[inline]
    fn is_stateless(&self) -> bool {
        true
    }

    fn validate(&self, _: &Limits) -> Vec<Warning> {
        let Growth { base, cap, factor, .. } = self.settings().growth;
        let warnings = [
            Recommended::BASE.time("base", base),
            Recommended::FACTOR.number("factor", factor),
            Recommended::CAP.time("max_delay", cap),
        ];
        warnings.into_iter().flatten().collect()
    }
}

/// The per-call state of [`Exponential`].
///
/// The interval grows with each drawn delay. The retry number has no effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExponentialDelays(State);

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    /// The common form. A delay costs two dozen instructions here, and a hundred in the general form, or several
    /// hundred for intervals of 52 days or more.
    DoublingFull(DoublingFull),
    /// Everything else.
    General(General),
}

/// Full jitter with factor 2: an addition, a comparison and a multiplication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DoublingFull {
    /// The number of possible delays, in nanoseconds from zero to the interval.
    choices: u64,
    /// The number of choices at the cap.
    most: u64,
    // The other settings, which are read by setters.
    base: Duration,
    cap: Duration,
    clamp_jitter: bool,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct General {
    growth: Growth,
    jitter: Jitter,
    clamp_jitter: bool,
}

impl Delays for ExponentialDelays {
    #[inline]
    fn next_delay(&mut self, _: &NextRetry, random: &mut dyn Random) -> Option<Duration> {
        match &mut self.0 {
            State::DoublingFull(doubling) => Some(doubling.next_delay(random)),
            State::General(general) => Some(general.next_delay(random)),
        }
    }
}

impl DoublingFull {
    #[inline]
    fn of(General { growth, jitter, clamp_jitter }: &General) -> Option<Self> {
        if growth.factor != 2.0 || *jitter != Jitter::full() {
            return None;
        }
        let Growth { base, cap, .. } = *growth;
        let (choices, most) = (choices(base.min(cap))?, choices(cap)?);
        Some(Self { choices, most, base, cap, clamp_jitter: *clamp_jitter })
    }

    #[inline]
    fn settings(self) -> General {
        let growth = Growth::new(self.base, 2.0, self.cap);
        General { growth, jitter: Jitter::full(), clamp_jitter: self.clamp_jitter }
    }

    #[inline]
    fn next_delay(&mut self, random: &mut dyn Random) -> Duration {
        let choices = self.choices;
        self.choices = (choices + (choices - 1)).min(self.most);
        // The high half of the product maps 64 random bits onto `0..choices`.
        let product = u128::from(random.next_u64()) * u128::from(choices);
        from_nanos(u64::try_from(product >> 64).unwrap_or(0))
    }
}

impl General {
    /// Computes the delay out of line, so that the code for the common case stays small.
    #[inline(never)]
    fn next_delay(&mut self, random: &mut dyn Random) -> Duration {
        if !self.clamp_jitter
            && let Some(interval) = self.growth.short_step()
        {
            return self.jitter.draw(interval, random);
        }
        self.next_rare_delay(random)
    }

    /// Draws from an interval that is too long for the fast form, or from a range clamped at the cap.
    #[inline(never)]
    fn next_rare_delay(&mut self, random: &mut dyn Random) -> Duration {
        let (shortest, mut longest) = self.jitter.range(self.growth.step());
        if self.clamp_jitter {
            longest = longest.min(self.growth.cap);
        }
        random.between(shortest, longest)
    }
}

/// Returns the number of delays from zero to `longest`, or `None` if twice that number does not fit.
#[inline]
fn choices(longest: Duration) -> Option<u64> {
    let nanos = u64::try_from(longest.as_nanos()).ok().filter(|nanos| *nanos <= LONGEST_DOUBLING);
    Some(nanos? + 1)
}

/// Returns the same as [`Duration::from_nanos`], without its division for delays below a second.
#[inline]
#[allow(clippy::cast_possible_truncation, reason = "below a billion")]
fn from_nanos(nanoseconds: u64) -> Duration {
    if nanoseconds < 1_000_000_000 { Duration::new(0, nanoseconds as u32) } else { from_many_nanos(nanoseconds) }
}

/// Computes the delay out of line, so that the code for the common case stays small.
#[cold]
#[inline(never)]
fn from_many_nanos(nanoseconds: u64) -> Duration {
    Duration::from_nanos(nanoseconds)
}

/// Returns the default cap.
#[inline]
fn default_cap(base: Duration) -> Duration {
    base.max(DEFAULT_CAP)
}
