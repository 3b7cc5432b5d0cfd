//! The policies for the stack's attempts: retries or hedges.

use std::time::Duration;

use reattempt_core::{Budget, ConfigError, Schedule, Warning};
use reattempt_engine::hedge::{Hedge, HedgePolicy};
use reattempt_engine::protocol::RequestProtocol;
use reattempt_engine::{Retry, RetryPolicy};

mod sealed {
    /// Only the two policies implement it.
    #[expect(unnameable_types, reason = "nothing else implements it")]
    pub trait Sealed {}
}
use sealed::Sealed;

/// A policy for the attempts of the standard stack: [`RetryPolicy`] or [`HedgePolicy`]. This trait is sealed.
pub trait AttemptPolicy: Sealed + Clone {
    /// The protocol type.
    type Protocol: RequestProtocol + Clone;
    /// The error mode of calls.
    type Errors;
    /// The type of a client `C` with this policy.
    type Client<C>;

    #[doc(hidden)]
    fn client<C: Clone>(self, inner: C) -> Self::Client<C>;

    #[doc(hidden)]
    fn shared_protocol(&self) -> Self::Protocol;

    /// Returns an error if a setting contradicts the stack's attempt timeout.
    #[doc(hidden)]
    fn fits(&self, attempt_timeout: Duration) -> Result<(), ConfigError>;

    #[doc(hidden)]
    fn warnings(&self) -> Vec<Warning>;

    #[doc(hidden)]
    fn max_elapsed(&self) -> Option<Duration>;
}

impl<P: RequestProtocol, Backoff: Schedule, B, Mode> Sealed for RetryPolicy<P, Backoff, B, Mode> {}
impl<P: RequestProtocol, B, Mode> Sealed for HedgePolicy<P, B, Mode> {}

impl<P, Backoff, B, Mode> AttemptPolicy for RetryPolicy<P, Backoff, B, Mode>
where
    P: RequestProtocol + Clone,
    Backoff: Schedule,
    B: Budget,
{
    type Protocol = P;
    type Errors = Mode;
    type Client<C> = Retry<C, Self>;

    fn client<C: Clone>(self, inner: C) -> Retry<C, Self> {
        Retry::new(self, inner)
    }

    fn shared_protocol(&self) -> P {
        self.protocol_ref().clone()
    }

    fn fits(&self, _: Duration) -> Result<(), ConfigError> {
        let Some(own) = self.get_attempt_timeout() else { return Ok(()) };
        let allowed = "unset: `attempt_timeout` of the stack stands inside the guards";
        Err(ConfigError::new("RetryPolicy::attempt_timeout", format!("{own:?}"), allowed))
    }

    fn warnings(&self) -> Vec<Warning> {
        self.validate()
    }

    fn max_elapsed(&self) -> Option<Duration> {
        self.limits().max_elapsed
    }
}

impl<P, B, Mode> AttemptPolicy for HedgePolicy<P, B, Mode>
where
    P: RequestProtocol + Clone,
    B: Budget,
{
    type Protocol = P;
    type Errors = Mode;
    type Client<C> = Hedge<C, Self>;

    fn client<C: Clone>(self, inner: C) -> Hedge<C, Self> {
        Hedge::new(self, inner)
    }

    fn shared_protocol(&self) -> P {
        self.protocol_ref().clone()
    }

    /// Requires a delay below the attempt timeout. After a timeout, the next attempt is sent immediately, so a longer
    /// delay would have no effect.
    fn fits(&self, attempt_timeout: Duration) -> Result<(), ConfigError> {
        let Some(delay) = self.fixed_delay().filter(|delay| *delay >= attempt_timeout) else {
            return Ok(());
        };
        Err(ConfigError::new("HedgePolicy::delay", format!("{delay:?}"), "below `attempt_timeout`"))
    }

    fn warnings(&self) -> Vec<Warning> {
        self.validate()
    }

    fn max_elapsed(&self) -> Option<Duration> {
        self.limits_ref().max_elapsed
    }
}
