//! The workers in virtual time. Each waits for the interval of its pace, calls, records the
//! outcome, and begins again, until it leaves.

use std::time::Duration;

use reattempt::schedule::{CallRandom, Failure, FailureKind, Responsive as Pace, Schedule, SentAt};
use serde::Serialize;

use super::service::Service;
use crate::events::{EventQueue, nanoseconds};
use crate::progress::Progress;

/// The workers and the duration of the simulation.
pub(super) struct Workers<'a> {
    /// One for each worker; clones share one pace.
    pub(super) paces: &'a [Pace],
    pub(super) apart: Duration,
    pub(super) stay: Option<Duration>,
    pub(super) latency: Duration,
    /// The most calls of all workers together.
    pub(super) most: u32,
}

/// One call; times in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Call {
    pub(super) worker: usize,
    /// The time at which the call reached the service.
    pub(super) at: f64,
    /// The delay of its worker before the call.
    pub(super) delay: f64,
    pub(super) accepted: bool,
    /// The capacity of the service at that time, in calls a second.
    pub(super) capacity: Option<f64>,
}

/// The next step of a worker.
enum Step {
    /// The worker reads the interval of its pace and waits.
    Begin,
    /// Its call reaches the service.
    Call(Duration),
    /// The worker receives the outcome.
    Answer(SentAt, bool),
}

impl Workers<'_> {
    /// Returns every call, in the order of time.
    pub(super) fn calls(&self, mut service: Service, seed: u64) -> Vec<Call> {
        let throttled = Failure::new(FailureKind::Throttled);
        let mut randoms: Vec<_> =
            (0..self.paces.len() as u64).map(|worker| CallRandom::of_call(seed, worker)).collect();
        let mut queue = EventQueue::new();
        let mut coming = 0u64;
        let mut going = Vec::new();
        for worker in 0..self.paces.len() {
            queue.after(coming, (worker, Step::Begin));
            going.push(self.stay.map_or(u64::MAX, |stay| coming.saturating_add(nanoseconds(stay))));
            coming = coming.saturating_add(nanoseconds(self.apart));
        }
        let latency = nanoseconds(self.latency);
        let mut calls = Vec::new();
        let (mut number, mut progress) = (0, Progress::new(u64::from(self.most)));
        while let Some((worker, step)) = queue.next() {
            let (Some(pace), Some(random)) = (self.paces.get(worker), randoms.get_mut(worker)) else {
                continue;
            };
            match step {
                Step::Begin => {
                    let delay = pace.interval();
                    let at = queue.now().saturating_add(nanoseconds(delay));
                    if going.get(worker).is_some_and(|going| at < *going) {
                        queue.after(nanoseconds(delay), (worker, Step::Call(delay)));
                    }
                }
                Step::Call(delay) => {
                    if number == self.most {
                        break;
                    }
                    progress.step_of(number);
                    number += 1;
                    if !delay.is_zero() {
                        pace.slept(delay);
                    }
                    let accepted = service.accepts(queue.now());
                    calls.push(Call {
                        worker,
                        at: Duration::from_nanos(queue.now()).as_secs_f64(),
                        delay: delay.as_secs_f64(),
                        accepted,
                        capacity: service.capacity(),
                    });
                    queue.after(latency, (worker, Step::Answer(pace.on_send(), accepted)));
                }
                Step::Answer(sent_at, true) => {
                    pace.on_success(sent_at, random);
                    queue.after(0, (worker, Step::Begin));
                }
                Step::Answer(sent_at, false) => {
                    pace.on_failure(sent_at, &throttled, random);
                    queue.after(0, (worker, Step::Begin));
                }
            }
        }
        calls
    }
}
