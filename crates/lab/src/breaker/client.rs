//! The calls of one client through a breaker, in virtual time.

use std::time::Duration;

use reattempt::guard::CircuitBreaker;
use reattempt::guard::contract::{Admit, Arrival, BreakerTicket, End, Guard, Health};
use reattempt::schedule::CallRandom;
use serde::Serialize;

use super::Step;
use crate::chance::{fraction, gap};
use crate::events::{EventQueue, nanoseconds};
use crate::progress::Progress;

/// A client that calls at random times (a Poisson process), whose calls all take as long.
pub(super) struct Client<'a> {
    /// A breaker with one state.
    pub(super) breaker: CircuitBreaker,
    pub(super) errors: &'a [Step],
    pub(super) rate: f64,
    pub(super) latency: Duration,
    pub(super) duration: Duration,
    pub(super) seed: u64,
}

/// The result.
pub(super) struct Course {
    pub(super) stretches: Vec<Stretch>,
    pub(super) per_second: Vec<Second>,
}

/// A stretch of time in one state; times in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Stretch {
    pub(super) state: String,
    pub(super) from: f64,
    pub(super) to: f64,
    /// Calls that arrived.
    pub(super) calls: u64,
    /// Calls that were sent and failed, by the time of the failure.
    pub(super) failed: u64,
    /// Calls that the breaker refused.
    pub(super) refused: u64,
}

/// The calls that arrived in a second.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Second {
    pub(super) calls: u32,
    pub(super) refused: u32,
}

enum Event {
    Call,
    Answer(BreakerTicket, Health),
}

impl Client<'_> {
    pub(super) fn run(self, progress: &mut Progress) -> Course {
        // Every call draws its failure, so that all breakers meet the same script.
        let [mut arrivals, mut failures] = [0, 1].map(|stream| CallRandom::of_call(self.seed, stream));
        let (mut queue, end) = (EventQueue::new(), nanoseconds(self.duration));
        let mut log = Log { course: Course { stretches: Vec::new(), per_second: Vec::new() } };
        queue.after(gap(self.rate, &mut arrivals), Event::Call);
        log.enter(&self.breaker, Duration::ZERO);
        while let Some(event) = queue.next().filter(|_| queue.now() < end) {
            let now = Duration::from_nanos(queue.now());
            match event {
                Event::Call => {
                    queue.after(gap(self.rate, &mut arrivals), Event::Call);
                    let fails = fraction(&mut failures) < self.share(now);
                    let admitted = self.breaker.admit(&Arrival::new(SERVER, now));
                    // An open time that is over ends at this call.
                    log.enter(&self.breaker, now);
                    log.call(now, matches!(admitted, Admit::Refused(_)), progress);
                    if let Admit::Admitted(ticket) = admitted {
                        let health = if fails { Health::Failed } else { Health::Served };
                        queue.after(nanoseconds(self.latency), Event::Answer(ticket, health));
                    }
                }
                Event::Answer(ticket, health) => {
                    if let (Health::Failed, Some(last)) = (health, log.course.stretches.last_mut()) {
                        last.failed += 1;
                    }
                    self.breaker.end_ticket(ticket, &End::judged(health, self.latency), now);
                    log.enter(&self.breaker, now);
                }
            }
        }
        if let Some(last) = log.course.stretches.last_mut() {
            last.to = self.duration.as_secs_f64();
        }
        log.course
    }

    /// Returns the share of the calls that fails at this time.
    fn share(&self, now: Duration) -> f64 {
        let past = self.errors.iter().take_while(|step| step.from <= now);
        past.last().map_or(0.0, |step| step.share)
    }
}

/// The destination of all calls.
const SERVER: &str = "server";

/// The stretches and seconds so far.
struct Log {
    course: Course,
}

impl Log {
    /// Begins a stretch if the state has changed.
    fn enter(&mut self, breaker: &CircuitBreaker, now: Duration) {
        let (state, from) = (breaker.state_at(SERVER, now).to_string(), now.as_secs_f64());
        let stretches = &mut self.course.stretches;
        if stretches.last().is_some_and(|last| last.state == state) {
            return;
        }
        if let Some(last) = stretches.last_mut() {
            last.to = from;
        }
        stretches.push(Stretch { state, from, to: from, calls: 0, failed: 0, refused: 0 });
    }

    fn call(&mut self, now: Duration, refused: bool, progress: &mut Progress) {
        if let Some(last) = self.course.stretches.last_mut() {
            last.calls += 1;
            last.refused += u64::from(refused);
        }
        let second = usize::try_from(now.as_secs()).unwrap_or(usize::MAX);
        let seconds = &mut self.course.per_second;
        while seconds.len() <= second {
            seconds.push(Second::default());
            progress.step();
        }
        seconds[second].calls += 1;
        seconds[second].refused += u32::from(refused);
    }
}
