//! The retry loop of a blocking operation, which runs and sleeps on the caller's thread.

use std::thread;
use std::time::Duration;

use reattempt_core::{Budget, Classification, Schedule};

use crate::call::clock::Instant;

use super::{RetryError, Retrying};

impl<F, E, Backoff, B, J, N> Retrying<F, E, Backoff, B, J, N>
where
    Backoff: Schedule,
    B: Budget,
    J: Fn(&E) -> Classification,
    N: FnMut(&E, Duration),
{
    /// Runs the operation on the current thread, which sleeps between attempts.
    ///
    /// Do not call this on a thread that runs asynchronous tasks, because it blocks all of them.
    ///
    /// # Errors
    /// Returns a [`RetryError`] with the operation's last error and the stop reason.
    pub fn call<T>(self) -> Result<T, RetryError<E>>
    where
        F: FnMut() -> Result<T, E>,
    {
        #[expect(clippy::disallowed_methods, reason = "blocking is what was asked for")]
        self.call_with(thread::sleep)
    }

    /// Runs the operation and calls `sleep` between attempts, for tests and custom ways to sleep.
    ///
    /// # Errors
    /// Returns a [`RetryError`] with the operation's last error and the stop reason.
    pub fn call_with<T>(self, mut sleep: impl FnMut(Duration)) -> Result<T, RetryError<E>>
    where
        F: FnMut() -> Result<T, E>,
    {
        let (mut operation, mut tries) = self.begin(true);
        tries.takes_time();
        loop {
            tries.attempt();
            let error = match operation() {
                Ok(value) => {
                    tries.succeed();
                    return Ok(value);
                }
                Err(error) => error,
            };
            // A blocking call does not wait for a remote budget's confirmation, but is charged anyway.
            let due = tries.fail(&error).and_then(|granted| match tries.notify_retry(&error, &granted) {
                Some(due) => {
                    sleep(due.saturating_duration_since(Instant::now()));
                    tries.check_in_time()
                }
                None => Ok(()),
            });
            if let Err(stop) = due {
                return Err(tries.give_up(error, stop));
            }
        }
    }
}
