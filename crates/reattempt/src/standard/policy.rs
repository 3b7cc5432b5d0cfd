//! The policies for the stack's attempts: retries or hedges.

use reattempt_core::{Budget, Combined, Schedule, Warning};
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

    /// Returns a warning for each setting of the policy alone.
    #[doc(hidden)]
    fn warnings(&self) -> Vec<Warning>;

    /// Returns the settings that can contradict those of the stack.
    #[doc(hidden)]
    fn combined(&self) -> Combined;
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

    fn warnings(&self) -> Vec<Warning> {
        self.validate()
    }

    fn combined(&self) -> Combined {
        let policy_attempt_timeout = self.get_attempt_timeout();
        Combined { limits: Some(*self.limits()), policy_attempt_timeout, ..Combined::default() }
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

    fn warnings(&self) -> Vec<Warning> {
        self.validate()
    }

    /// After a timeout, the next attempt is sent immediately, so a hedge delay above the attempt timeout would have no
    /// effect.
    fn combined(&self) -> Combined {
        Combined { limits: Some(*self.limits_ref()), hedge_delay: self.fixed_delay(), ..Combined::default() }
    }
}
