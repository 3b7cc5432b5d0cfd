//! The server: so many workers, a queue before them, and what goes wrong with it for a while.
//!
//! What flows in: requests and the moments at which workers are done. What flows out: what becomes
//! of a request, and how long a worker is busy with it. Whether anybody still waits for the answer
//! the server cannot know; it does the work all the same.

use std::collections::VecDeque;
use std::ops::Range;

use reattempt::CallRandom;
use reattempt::schedule::Random;

/// The properties of a server. Times are in ticks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ServerSettings {
    /// The number of requests that are worked on at once.
    pub(super) workers: u64,
    /// The time a worker takes for one.
    pub(super) service: u64,
    /// The number that may wait; further ones are refused.
    pub(super) queue: usize,
    pub(super) fault: Fault,
    /// The stretch in which the fault is there.
    pub(super) faulty: Range<u64>,
    /// Mean length of a stretch in which every request fails, where failures come in bursts.
    pub(super) burst: Option<u64>,
    /// The work of a refusal, as a share of that of an answer.
    pub(super) refusal_cost: f64,
}

/// A way in which a server fails.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Fault {
    /// Workers begin with nothing new: requests are taken in, and none is answered.
    Stall,
    /// A request takes this many times as long.
    Slow(u32),
    /// This share of the requests is refused.
    Refuse(f64),
    /// This share of the requests is never answered.
    Lose(f64),
}

/// A server at work on requests of type `J`.
#[derive(Debug)]
pub(super) struct Server<J> {
    settings: ServerSettings,
    busy: u64,
    waiting: VecDeque<J>,
    random: CallRandom,
    bursts: Bursts,
    /// Work on refusals that the next answers have to wait for, in ticks.
    owed: f64,
}

/// The fate of a request that arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrival<J> {
    /// A worker begins with it, and is done after this many ticks.
    Begun(J, u64),
    /// It waits for a worker.
    Waits,
    /// It is answered with a failure at once.
    Refused(J),
    /// It is never answered.
    Lost,
}

impl<J> Server<J> {
    /// Creates an idle server. `random` has a stream for chance failures, and one for bursts of them.
    pub(super) fn new(settings: ServerSettings, [random, bursts]: [CallRandom; 2]) -> Self {
        let bursts = Bursts { random: bursts, until: 0, failing: true };
        Self { settings, busy: 0, waiting: VecDeque::new(), random, bursts, owed: 0.0 }
    }

    /// A request arrives at the moment `now`.
    pub(super) fn arrive(&mut self, now: u64, job: J) -> Arrival<J> {
        if self.loses(now) {
            Arrival::Lost
        } else if self.refuses(now) {
            self.refuse(job)
        } else if self.busy < self.settings.workers && self.waiting.is_empty() && !self.stalls(now)
        {
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

    fn work(&mut self, now: u64) -> u64 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "never below zero, and the cast saturates"
        )]
        let refusals = self.owed as u64;
        self.owed -= refusals as f64;
        let service = match self.settings.fault {
            Fault::Slow(factor) if self.is_faulty(now) => {
                self.settings.service.saturating_mul(factor.into())
            }
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

/// A chain of two states: everything fails, or nothing.
#[derive(Debug)]
struct Bursts {
    random: CallRandom,
    /// The moment at which the present state ends.
    until: u64,
    failing: bool,
}

impl Bursts {
    /// Returns `true` if everything fails at `now`, where bursts of this mean length take `share` of the time.
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

/// A number drawn uniformly from [0, 1).
pub(super) fn fraction(random: &mut CallRandom) -> f64 {
    // As many bits as a fraction has.
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}
