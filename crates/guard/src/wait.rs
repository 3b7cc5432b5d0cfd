//! A function that waits for a rate limit's tokens, for work that is not a guarded call.

use std::time::Duration;

use reattempt_control::{RateLimit, Reservation};
use reattempt_core::guard::{GuardKind, Reason, Refused};

use reattempt_engine::protocol::AsDestination;

use super::shared::now;

/// Waits until `n` tokens of `destination` are available, at most `longest`.
///
/// This is the equivalent of `WaitN` in Go's x/time/rate. Use it for work that does not pass through a
/// [`GuardLayer`](super::GuardLayer), such as a batch of `n` messages or bytes. The tokens are reserved immediately, so
/// a later change of the rate or the burst does not change the wait.
///
/// ```
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() -> Result<(), reattempt::guard::Refused> {
/// use std::time::Duration;
/// use reattempt::guard::{Limit, RateLimit};
/// use reattempt::guard::handle::wait_for_tokens;
///
/// let limit = RateLimit::new(Limit::per_second(100), 50);
/// wait_for_tokens(&limit, "queue.example", 50, Duration::MAX).await?; // at once: the burst
/// wait_for_tokens(&limit, "queue.example", 20, Duration::MAX).await?; // after 0.2 s
/// # Ok(())
/// # }
/// ```
///
/// # Errors
///
/// Returns an error immediately, and takes no tokens, if `n` exceeds the burst ([`Reason::TooLarge`]) or the wait would
/// exceed `longest` ([`Reason::WaitTooLong`]).
///
/// # Cancel safety
///
/// Dropping the future returns its tokens, except those that later reservations have borrowed.
///
/// # Panics
///
/// Panics if it has to wait outside a tokio runtime with a time driver.
#[doc(alias("wait", "wait_n"))]
pub async fn wait_for_tokens(
    limit: &RateLimit,
    destination: impl AsDestination,
    n: u32,
    longest: Duration,
) -> Result<(), Refused> {
    let (start, destination) = (now(), destination.key_to_read().into_owned());
    let reservation = limit.reserve_until_at(&destination, n, start, start.saturating_add(longest));
    if !reservation.ok() {
        let too_large = n > limit.burst(&destination);
        let reason = if too_large { Reason::TooLarge } else { Reason::WaitTooLong };
        return Err(Refused::new(GuardKind::RATE_LIMIT, reason));
    }
    let delay = reservation.delay_at(start);
    if !delay.is_zero() {
        let mut unused = Unused(Some(reservation));
        tokio::time::sleep(delay).await;
        unused.0 = None;
    }
    Ok(())
}

/// A reservation that is cancelled on drop if it was not used.
struct Unused(Option<Reservation>);

impl Drop for Unused {
    fn drop(&mut self) {
        if let Some(reservation) = &mut self.0 {
            reservation.cancel_at(now());
        }
    }
}
