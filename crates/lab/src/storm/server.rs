//! The server: a number of workers, a queue before them, and a fault for some time.
//!
//! Input: requests, and the times at which workers finish. Output: the result of a request, and the
//! time that a worker needs for it. The server cannot detect that a client has stopped waiting, so
//! it does the work anyway.

use std::collections::VecDeque;
use std::ops::Range;

use reattempt::schedule::CallRandom;

use crate::chance::fraction;

/// The properties of a server. Times are in ticks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerSettings {
    /// The number of requests that are processed in parallel.
    pub(super) workers: u64,
    /// The time that a worker takes for a request.
    pub(super) service: u64,
    /// The number of requests that may wait; further ones are refused.
    pub(super) queue: usize,
    pub(super) fault: Fault,
    /// The time in which the fault lasts.
    pub(super) faulty: Range<u64>,
    /// The mean length of a burst in which every request fails, if failures come in bursts.
    pub(super) burst: Option<u64>,
    /// The work of a refusal, as a share of that of an answer.
    pub(super) refusal_cost: f64,
}

/// A way in which a server fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    /// Requests are queued, and workers begin none of them.
    Stall,
    /// A request takes this many times as long.
    Slow(u32),
    /// This share of the requests is refused.
    Refuse(f64),
    /// This share of the requests is never answered.
    Lose(f64),
}

/// A server that processes requests of type `J`.
#[derive(Debug)]
pub(super) struct Server<J> {
    settings: ServerSettings,
    busy: u64,
    waiting: VecDeque<J>,
    random: CallRandom,
    bursts: Bursts,
    /// Work on refusals that delays the next answers, in ticks.
    owed: f64,
}

/// The result of a request's arrival.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival<J> {
    /// A worker begins the request, and finishes after this many ticks.
    Begun(J, u64),
    /// The request waits for a worker.
    Waits,
    /// The request fails at once.
    Refused(J),
    /// The request is never answered.
    Lost,
}

impl<J> Server<J> {
    /// Creates an idle server. `random` is a stream for random failures, and `bursts` one for
    /// bursts of them.
    pub(super) fn new(settings: ServerSettings, [random, bursts]: [CallRandom; 2]) -> Self {
        let bursts = Bursts { random: bursts, until: 0, failing: true };
        Self { settings, busy: 0, waiting: VecDeque::new(), random, bursts, owed: 0.0 }
    }

    /// Accepts or refuses a request that arrives at `now`.
    pub(super) fn arrive(&mut self, now: u64, job: J) -> Arrival<J> {
        if self.loses(now) {
            Arrival::Lost
        } else if self.refuses(now) {
            self.refuse(job)
        } else if self.busy < self.settings.workers && self.waiting.is_empty() && !self.stalls(now) {
            self.busy += 1;
            Arrival::Begun(job, self.work(now))
        } else if self.waiting.len() < self.settings.queue {
            self.waiting.push_back(job);
            Arrival::Waits
        } else {
            self.refuse(job)
        }
    }

    fn refuse(&mut self, job: J) -> Arrival<J> {
        self.owed += self.settings.refusal_cost * self.settings.service as f64;
        Arrival::Refused(job)
    }

    /// Frees a worker.
    pub(super) fn done(&mut self) {
        self.busy = self.busy.saturating_sub(1);
    }

    /// Returns the next request that a worker begins at `now`, with its end. Call it until it
    /// returns `None`, when a worker is freed and when the fault ends.
    pub(super) fn begin_next(&mut self, now: u64) -> Option<(J, u64)> {
        if self.stalls(now) || self.busy >= self.settings.workers {
            return None;
        }
        let job = self.waiting.pop_front()?;
        self.busy += 1;
        Some((job, self.work(now)))
    }

    fn work(&mut self, now: u64) -> u64 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "never below zero, and the cast saturates"
        )]
        let refusals = self.owed as u64;
        self.owed -= refusals as f64;
        let service = match self.settings.fault {
            Fault::Slow(factor) if self.is_faulty(now) => self.settings.service.saturating_mul(factor.into()),
            _ => self.settings.service,
        };
        service.saturating_add(refusals)
    }

    fn stalls(&self, now: u64) -> bool {
        self.settings.fault == Fault::Stall && self.is_faulty(now)
    }

    fn refuses(&mut self, now: u64) -> bool {
        match self.settings.fault {
            Fault::Refuse(share) if self.is_faulty(now) => self.fails(now, share),
            _ => false,
        }
    }

    fn loses(&mut self, now: u64) -> bool {
        match self.settings.fault {
            Fault::Lose(share) if self.is_faulty(now) => self.fails(now, share),
            _ => false,
        }
    }

    fn fails(&mut self, now: u64, share: f64) -> bool {
        match self.settings.burst {
            None => fraction(&mut self.random) < share,
            Some(mean) => self.bursts.is_failing(now, mean, share),
        }
    }

    fn is_faulty(&self, now: u64) -> bool {
        self.settings.faulty.contains(&now)
    }
}

/// A Markov chain of two states: every request fails, or none.
#[derive(Debug)]
struct Bursts {
    random: CallRandom,
    /// The end of the current state.
    until: u64,
    failing: bool,
}

impl Bursts {
    /// Returns `true` if every request fails at `now`; bursts of this mean length take `share` of
    /// the time.
    fn is_failing(&mut self, now: u64, mean: u64, share: f64) -> bool {
        if share == 0.0 || share == 1.0 {
            return share == 1.0;
        }
        while self.until <= now {
            self.failing = !self.failing;
            let mean = mean as f64 * if self.failing { 1.0 } else { (1.0 - share) / share };
            let length = -mean * (1.0 - fraction(&mut self.random)).ln();
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "never below zero, and the cast saturates"
            )]
            let length = (length.ceil() as u64).max(1);
            self.until = self.until.saturating_add(length);
        }
        self.failing
    }
}
