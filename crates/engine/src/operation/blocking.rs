//! The retry loop of a blocking operation, which runs and sleeps on the caller's thread.

use std::thread;
use std::time::Duration;

use reattempt_core::{Budget, Schedule};

use crate::call::clock::Instant;

use super::rules::Rules;
use super::tries::FailedResult;
use super::{RetryError, Retrying};

impl<F, T, E, Backoff, B, R> Retrying<F, T, E, Backoff, B, R>
where
    Backoff: Schedule,
    B: Budget,
    R: Rules<T, E>,
{
    /// Runs the operation on the current thread, which sleeps between attempts.
    ///
    /// Do not call this on a thread that runs asynchronous tasks, because it blocks all of them.
    ///
    /// # Errors
    /// Returns a [`RetryError`] with the operation's last error and the stop reason.
    pub fn call(self) -> Result<T, RetryError<E>>
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
    pub fn call_with(self, mut sleep: impl FnMut(Duration)) -> Result<T, RetryError<E>>
    where
        F: FnMut() -> Result<T, E>,
    {
        let (mut operation, mut tries) = self.begin(true);
        tries.takes_time();
        loop {
            tries.attempt();
            let failed = match operation() {
                Ok(value) => match tries.refuses(&value) {
                    None => {
                        tries.succeed();
                        return Ok(value);
                    }
                    Some(judged) => FailedResult::Value(value, judged),
                },
                Err(error) => FailedResult::Error(error),
            };
            // A blocking call does not wait for a remote budget's confirmation, but is charged anyway.
            let due = tries.fail(&failed).and_then(|granted| match tries.notify_retry(&failed, &granted) {
                Some(due) => {
                    sleep(due.saturating_duration_since(Instant::now()));
                    tries.check_in_time()
                }
                None => Ok(()),
            });
            if let Err(stop) = due {
                return tries.give_up(failed, stop);
            }
        }
    }
}
