//! A deadline that travels with a request.

use std::time::Duration;

#[cfg(feature = "http")]
use http::Extensions;
use tokio::time::Instant;

use crate::call::clock;

/// The message of a call that its deadline has ended.
pub(crate) const PASSED: &str = "the deadline of the call has passed";

/// The moment by which a call must be over.
///
/// Put it into the extensions of a request, or into [`CallOptions`](crate::CallOptions): a retry
/// whose delay would pass it is not made. A policy that
/// [interrupts](crate::RetryPolicy::attempt_timeout) ends the call there, and so does one whose protocol
/// has an answer for it. Every attempt finds the deadline in its extensions. A server
/// [propagates](Self::propagate) the deadline of a call to the calls it makes for it.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use reattempt::Deadline;
///
/// let mut outbound = Request::new(());
/// outbound.extensions_mut().insert(Deadline::after(Duration::from_millis(1500)));
/// ```
#[doc(alias = "timeout")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline this long from now, by tokio's clock; at most some thirty years.
    pub fn after(timeout: Duration) -> Self {
        Self(clock::later(Instant::now(), timeout))
    }

    /// Hands an inbound call's deadline on to an outbound one, if it has any: from extensions to
    /// extensions. Of a deadline that is there already and this one the earlier stays.
    ///
    /// It is carried by the requests alone, and not by the task: so it follows a handler that spawns or
    /// sends from another task, it costs nothing where nobody asks for it, and what a handler starts in
    /// passing, to go on after its caller has the answer, is not cut short unless it says so.
    ///
    /// ```
    /// use http::Request;
    /// use reattempt::Deadline;
    /// # fn handle(inbound: Request<()>) {
    /// let mut outbound = Request::new(());
    /// Deadline::propagate(inbound.extensions(), outbound.extensions_mut());
    /// # }
    /// ```
    ///
    /// For a client whose requests have no extensions (reqwest's): put the inbound one into
    /// [`CallOptions::deadline`](crate::CallOptions::deadline) of a handle.
    #[cfg(feature = "http")]
    pub fn propagate(inbound: &Extensions, outbound: &mut Extensions) {
        let inbound = inbound.get::<Self>();
        if let Some(earliest) = inbound.into_iter().chain(outbound.get()).min().copied() {
            outbound.insert(earliest);
        }
    }

    /// The time left; zero once it has passed.
    pub fn remaining(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub(crate) fn at(instant: Instant) -> Self {
        Self(instant)
    }

    pub(crate) fn instant(self) -> Instant {
        self.0
    }
}
