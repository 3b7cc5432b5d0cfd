//! A server: workers, and a queue before them. It may die and return.

use std::collections::VecDeque;

use reattempt::schedule::CallRandom;

use super::times::SERVICE;
use crate::chance::fraction;

/// The requests that may wait, as a multiple of the workers: some two seconds of work.
const QUEUE: usize = 60;

/// A server. It cannot detect that a client has stopped waiting, so it does the work anyway.
pub(super) struct Server {
    pub(super) up: bool,
    /// The number of its deaths. The work of a former process is gone.
    pub(super) epoch: u64,
    /// The responses since it started.
    pub(super) responses: u64,
    workers: usize,
    busy: usize,
    waiting: VecDeque<u64>,
    random: CallRandom,
}

impl Server {
    pub(super) fn new(workers: usize, random: CallRandom) -> Self {
        Self { up: true, epoch: 0, responses: 0, workers, busy: 0, waiting: VecDeque::new(), random }
    }

    /// Queues a request, unless the queue is full. Such a request is never answered.
    pub(super) fn queue(&mut self, attempt: u64) {
        if self.waiting.len() < QUEUE * self.workers {
            self.waiting.push_back(attempt);
        }
    }

    /// Returns the nanoseconds of work that wait.
    pub(super) fn backlog(&self) -> u64 {
        self.waiting.len() as u64 * SERVICE / self.workers as u64
    }

    /// Returns the next request that a free worker begins, with the time that it takes.
    pub(super) fn begin_next(&mut self) -> Option<(u64, u64)> {
        if self.busy >= self.workers {
            return None;
        }
        let attempt = self.waiting.pop_front()?;
        self.busy += 1;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most 1.5 times the service time"
        )]
        let time = (SERVICE as f64 * (0.5 + fraction(&mut self.random))) as u64;
        Some((attempt, time))
    }

    /// Frees a worker.
    pub(super) fn done(&mut self) {
        self.busy -= 1;
        self.responses += 1;
    }

    pub(super) fn drop_waiting(&mut self) {
        self.waiting.clear();
    }

    pub(super) fn die(&mut self) {
        (self.up, self.busy, self.responses) = (false, 0, 0);
        self.epoch += 1;
        self.waiting.clear();
    }
}
