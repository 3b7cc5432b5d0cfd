//! The server: so many workers, a queue before them, and what goes wrong with it for a while.
//!
//! What flows in: requests and the moments at which workers are done. What flows out: what becomes
//! of a request, and how long a worker is busy with it. Whether anybody still waits for the answer
//! the server cannot know; it does the work all the same.

use std::collections::VecDeque;
use std::ops::Range;

use reattempt::CallRandom;
use reattempt::schedule::Random;

/// What a server is like. Times are in ticks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerSettings {
    /// How many requests are worked on at once.
    pub(super) workers: u64,
    /// How long a worker takes for one.
    pub(super) service: u64,
    /// How many may wait; further ones are refused.
    pub(super) queue: usize,
    pub(super) fault: Fault,
    /// When the fault is there.
    pub(super) faulty: Range<u64>,
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    /// Workers begin with nothing new: requests are taken in, and none is answered.
    Stall,
    /// A request takes this many times as long.
    Slow(u32),
    /// This share of the requests is refused.
    Refuse(f64),
}

/// A server at work on requests of type `J`.
#[derive(Debug)]
pub(super) struct Server<J> {
    settings: ServerSettings,
    busy: u64,
    waiting: VecDeque<J>,
    random: CallRandom,
}

/// What becomes of a request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival<J> {
    /// A worker begins with it, and is done after this many ticks.
    Begun(J, u64),
    /// It waits for a worker.
    Waits,
    /// It is answered with a failure at once.
    Refused(J),
}

impl<J> Server<J> {
    pub(super) fn new(settings: ServerSettings, random: CallRandom) -> Self {
        Self { settings, busy: 0, waiting: VecDeque::new(), random }
    }

    /// A request arrives at the moment `now`.
    pub(super) fn arrive(&mut self, now: u64, job: J) -> Arrival<J> {
        if self.refuses(now) {
            Arrival::Refused(job)
        } else if self.busy < self.settings.workers && self.waiting.is_empty() && !self.stalls(now)
        {
            self.busy += 1;
            Arrival::Begun(job, self.work(now))
        } else if self.waiting.len() < self.settings.queue {
            self.waiting.push_back(job);
            Arrival::Waits
        } else {
            Arrival::Refused(job)
        }
    }

    /// A worker is done.
    pub(super) fn done(&mut self) {
        self.busy = self.busy.saturating_sub(1);
    }

    /// The next request that a worker begins with at the moment `now`, and when it will be done. To
    /// be asked, until there is none, when a worker is done and when the fault is over.
    pub(super) fn begin_next(&mut self, now: u64) -> Option<(J, u64)> {
        if self.stalls(now) || self.busy >= self.settings.workers {
            return None;
        }
        let job = self.waiting.pop_front()?;
        self.busy += 1;
        Some((job, self.work(now)))
    }

    fn work(&self, now: u64) -> u64 {
        match self.settings.fault {
            Fault::Slow(factor) if self.is_faulty(now) => {
                self.settings.service.saturating_mul(factor.into())
            }
            _ => self.settings.service,
        }
    }

    fn stalls(&self, now: u64) -> bool {
        self.settings.fault == Fault::Stall && self.is_faulty(now)
    }

    fn refuses(&mut self, now: u64) -> bool {
        match self.settings.fault {
            Fault::Refuse(share) if self.is_faulty(now) => fraction(&mut self.random) < share,
            _ => false,
        }
    }

    fn is_faulty(&self, now: u64) -> bool {
        self.settings.faulty.contains(&now)
    }
}

/// A number drawn uniformly from [0, 1).
pub(super) fn fraction(random: &mut CallRandom) -> f64 {
    // As many bits as a fraction has.
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
