//! The end of a body whose bytes are all received.

use std::error::Error;
use std::task::{Context, Poll};
use std::time::Duration;

#[cfg(feature = "digest")]
use bytes::Buf;
use reattempt_core::{Budget, Failure, FailureKind, Schedule, StopReason};
use reattempt_engine::wall::clock;
use reattempt_engine::wall::clock::{Instant, sleep_until};
use tower::BoxError;

use super::Resumption;
use crate::Source;

/// The time for which a complete part is read further, until its end.
const END_TIME: Duration = Duration::from_secs(5);

impl<R: Source, Backoff: Schedule, B: Budget> Resumption<R, Backoff, B> {
    /// Reads the bytes of a frame into the digest, and compares it after the last one.
    #[cfg(feature = "digest")]
    pub(crate) fn check_digest(&mut self, data: &impl Buf, is_last: bool) -> Result<(), BoxError> {
        if let Some(digest) = &mut self.digest {
            digest.read(data);
        }
        match self.digest.take_if(|_| is_last) {
            Some(digest) => Ok(digest.verify()?),
            None => Ok(()),
        }
    }

    /// Reports that the body is complete.
    pub(crate) fn complete(&mut self) {
        self.report_end(StopReason::Succeeded, Ok(None));
    }

    /// Returns `true` if an error of a complete part is that of a lost connection, which has no effect on the body. An
    /// inner layer's own error, such as that of a checksum, has.
    pub(crate) fn is_harmless(&self, error: &(dyn Error + 'static)) -> bool {
        let failure = self.classify(Err(error)).verdict.failure().map(Failure::kind);
        matches!(failure, Some(FailureKind::Connect | FailureKind::Network | FailureKind::Timeout))
    }

    /// Ends a complete body because of an inner layer's error.
    pub(crate) fn fail(&mut self, error: BoxError) -> BoxError {
        self.report_end(StopReason::Permanent, Err(&*error));
        error
    }

    /// Waits until a complete part is not read further.
    pub(crate) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.limit.is_none() && clock::has_timer() {
            self.limit = Some(Box::pin(sleep_until(Instant::now().later(END_TIME))));
        }
        // Without a timer, nothing would end the wait.
        self.limit.as_mut().map_or(Poll::Ready(()), |limit| clock::poll_interrupt(limit.as_mut(), cx))
    }
}
