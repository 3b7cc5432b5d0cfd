//! Handles to read and control guards: the state, counts and tokens of each destination.
//!
//! Clones of a guard share its state, so a clone is a handle to the guard in the layer. The traits in this module read
//! the clock of [`GuardLayer`](super::GuardLayer). In `reattempt-control`, the same methods take the time as an
//! argument, and their names end with `_at`. They take the exact key of a destination.
//!
//! The methods here take a destination as a person writes it: `one.example`, or any URL of the server
//! ([`Destination`]). If the destinations of a client come from a function of your own, pass [`Destination::key`].
//!
//! ```
//! use reattempt::guard::CircuitBreaker;
//! use reattempt::guard::handle::{BreakerState, CircuitBreakerExt};
//!
//! let breaker = CircuitBreaker::rate();
//! assert_eq!(breaker.state("https://one.example"), BreakerState::Closed);
//! breaker.isolate("https://One.example/orders")?;
//! assert_eq!(breaker.state("https://one.example"), BreakerState::ForcedOpen);
//! # Ok::<(), reattempt::error::ConfigError>(())
//! ```

use std::time::Duration;

use reattempt_control::{AdaptiveLimit, Bulkhead, CircuitBreaker, Limit, LimitRule, Pause, RateLimit, Throttle};
pub use reattempt_control::{BreakerState, Counts, Reservation, StateChange, ThrottleCounts, Usage};
use reattempt_core::ConfigError;

pub use reattempt_engine::protocol::{AsDestination, Destination};

pub use super::shared::now;
pub use super::wait::wait_for_tokens;

mod sealed {
    /// Only the guards of this module implement it.
    #[expect(unnameable_types, reason = "nothing else implements it")]
    pub trait Sealed {}

    /// A guard of type `G`, whose methods take the time as an argument.
    #[expect(unnameable_types, reason = "no other type implements it")]
    pub trait Timed<G> {
        fn timed(&self) -> &G;
    }

    impl<G> Timed<G> for G {
        fn timed(&self) -> &G {
            self
        }
    }
}
use sealed::{Sealed, Timed};

/// Changes a guard for each key of a destination.
fn each_key(destination: &impl AsDestination, change: impl Fn(&str)) -> Result<(), ConfigError> {
    destination.parsed()?.keys().for_each(change);
    Ok(())
}

impl Sealed for Bulkhead {}
impl<R: LimitRule> Sealed for AdaptiveLimit<R> {}

/// Methods of a circuit breaker that read the current time themselves.
pub trait CircuitBreakerExt: Timed<CircuitBreaker> {
    /// Returns the state for `destination`.
    fn state(&self, destination: impl AsDestination) -> BreakerState {
        self.timed().state_at(&destination.key_to_read(), now())
    }

    /// Returns the window's counts for `destination`.
    fn counts(&self, destination: impl AsDestination) -> Counts {
        self.timed().counts_at(&destination.key_to_read(), now())
    }

    /// Returns the time until a probe may be sent to `destination`, or `None` if the breaker is not open.
    fn open_time_left(&self, destination: impl AsDestination) -> Option<Duration> {
        self.timed().open_time_left_at(&destination.key_to_read(), now())
    }

    /// Refuses all calls to `destination` until it is [closed](Self::close).
    ///
    /// # Errors
    /// Returns an error for a text that no request can have as its host. Then nothing changes.
    fn isolate(&self, destination: impl AsDestination) -> Result<(), ConfigError> {
        each_key(&destination, |key| self.timed().isolate_at(key, now()))
    }

    /// Closes the breaker for `destination` and clears its counts. Calls in flight are not counted.
    ///
    /// # Errors
    /// Returns an error for a text that no request can have as its host. Then nothing changes.
    fn close(&self, destination: impl AsDestination) -> Result<(), ConfigError> {
        each_key(&destination, |key| self.timed().close_at(key, now()))
    }
}

impl CircuitBreakerExt for CircuitBreaker {}

/// Methods of a bulkhead or an adaptive limit that read the current time themselves.
pub trait UsageExt: Sealed {
    /// Returns the limit of `destination`, and the number of calls that use it.
    ///
    /// ```
    /// use reattempt::guard::Bulkhead;
    /// use reattempt::guard::handle::UsageExt;
    ///
    /// assert_eq!(Bulkhead::new(8).usage("https://one.example").limit, 8);
    /// ```
    fn usage(&self, destination: impl AsDestination) -> Usage;
}

impl UsageExt for Bulkhead {
    fn usage(&self, destination: impl AsDestination) -> Usage {
        self.usage_at(&destination.key_to_read(), now())
    }
}

impl<R: LimitRule> UsageExt for AdaptiveLimit<R> {
    fn usage(&self, destination: impl AsDestination) -> Usage {
        self.usage_at(&destination.key_to_read(), now())
    }
}

/// Methods of a throttle that read the current time themselves.
pub trait ThrottleExt: Timed<Throttle> {
    /// Returns the counts for `destination`, and the probability of a refusal.
    ///
    /// ```
    /// use reattempt::guard::Throttle;
    /// use reattempt::guard::handle::ThrottleExt;
    ///
    /// assert_eq!(Throttle::new().counts("https://one.example").probability, 0.0);
    /// ```
    fn counts(&self, destination: impl AsDestination) -> ThrottleCounts {
        self.timed().counts_at(&destination.key_to_read(), now())
    }
}

impl ThrottleExt for Throttle {}

/// Methods of a rate limit that read the current time themselves.
///
/// ```
/// use reattempt::guard::handle::RateLimitExt;
/// use reattempt::guard::{Limit, RateLimit};
///
/// let limit = RateLimit::new(Limit::ZERO, 2);
/// assert!(limit.allow("https://one.example", 2));
/// assert!(!limit.allow("https://one.example", 1));
/// assert_eq!(limit.tokens("https://one.example"), 0.0);
/// ```
pub trait RateLimitExt: Timed<RateLimit> {
    /// Takes `n` tokens. If there are fewer, takes none and returns `false`.
    ///
    /// [`wait_for_tokens`] waits until they are available.
    fn allow(&self, destination: impl AsDestination, n: u32) -> bool {
        self.timed().allow_n_at(&destination.key_to_read(), n, now())
    }

    /// Returns the tokens of `destination`. The number is negative if some were taken in advance.
    fn tokens(&self, destination: impl AsDestination) -> f64 {
        self.timed().tokens_at(&destination.key_to_read(), now())
    }

    /// Sets the rate of `destination` from now on.
    ///
    /// # Errors
    /// Returns an error for a text that no request can have as its host. Then nothing changes.
    fn set_limit(&self, destination: impl AsDestination, limit: Limit) -> Result<(), ConfigError> {
        each_key(&destination, |key| self.timed().set_limit_at(key, limit, now()))
    }

    /// Sets the burst of `destination` from now on.
    ///
    /// # Errors
    /// Returns an error for a text that no request can have as its host. Then nothing changes.
    fn set_burst(&self, destination: impl AsDestination, burst: u32) -> Result<(), ConfigError> {
        each_key(&destination, |key| self.timed().set_burst_at(key, burst, now()))
    }

    /// Adapts to a server's quota: `remaining` calls until `reset`, measured from now.
    ///
    /// # Errors
    /// Returns an error for a text that no request can have as its host. Then nothing changes.
    fn follow(&self, destination: impl AsDestination, remaining: u32, reset: Duration) -> Result<(), ConfigError> {
        each_key(&destination, |key| self.timed().follow_at(key, remaining, reset, now()))
    }
}

impl RateLimitExt for RateLimit {}

/// Methods of a pause that read the current time themselves.
///
/// ```
/// use std::time::Duration;
/// use reattempt::guard::Pause;
/// use reattempt::guard::handle::PauseExt;
///
/// assert_eq!(Pause::new().time_left("https://one.example"), Duration::ZERO);
/// ```
pub trait PauseExt: Timed<Pause> {
    /// Returns the time until the pause of `destination` ends, or zero if it is not paused.
    fn time_left(&self, destination: impl AsDestination) -> Duration {
        self.timed().time_left_at(&destination.key_to_read(), now())
    }
}

impl PauseExt for Pause {}
