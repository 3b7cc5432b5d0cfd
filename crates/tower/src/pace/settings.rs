//! What a call does at its two ends: it is noted when it is sent, and its outcome is judged and told.

use std::error::Error;

use reattempt_core::{Admission, Schedule, Verdict};
use reattempt_schedule_responsive::Responsive;

use crate::protocol::Judge;
use crate::random::{CallRandom, Seed};

/// What a layer and the services it makes go by.
#[derive(Debug, Clone)]
pub(super) struct Settings<K> {
    pub(super) pace: Responsive,
    pub(super) protocol: K,
    /// Whether outcomes are told to the pace.
    pub(super) tells: bool,
    pub(super) seed: Option<Seed>,
}

/// A call that was sent: the pace's note of it, and the stream of its random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sent {
    admission: Admission,
    stream: Option<u64>,
}

/// What a call does with them.
impl<K> Settings<K> {
    /// The call is sent.
    #[inline]
    pub(super) fn admit(&self) -> Sent {
        if !self.tells {
            return Sent::default();
        }
        let stream = self.seed.as_ref().map(Seed::next_stream);
        Sent { admission: self.pace.admit(), stream }
    }

    /// The call has ended so.
    #[inline]
    pub(super) fn tell<T>(&self, sent: Sent, outcome: Result<&T, &(dyn Error + 'static)>)
    where
        K: Judge<T>,
    {
        if !self.tells {
            return;
        }
        let verdict = self.protocol.judge(outcome, None, || false).verdict;
        let mut random = CallRandom::unseeded(sent.stream);
        if verdict == Verdict::Success {
            self.pace.succeeded(sent.admission, &mut random);
        } else if let Some(failure) = verdict.failure() {
            self.pace.failed(sent.admission, failure, &mut random);
        }
    }
}
