//! Callers that take turns in virtual time, as behind the guard `Pace`. They are workers that call
//! again after each answer, or an open load that does not depend on answers.

use std::collections::VecDeque;
use std::time::Duration;

use reattempt::schedule::{CallRandom, Failure, FailureKind, Responsive as Pace, Schedule, SentAt};

use super::service::Service;
use super::workers::Call;
use crate::chance::gap;
use crate::events::{EventQueue, nanoseconds};
use crate::progress::Progress;

/// The default bounds of the layer's queue.
const MOST_WAITING: usize = 1024;
const LONGEST_WAIT: Duration = Duration::from_secs(30);

/// The time that a worker waits after its call was turned away.
const TURNED_AWAY: Duration = Duration::from_secs(1);

/// The callers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Load {
    /// A number of workers, which arrive at this distance.
    Closed { workers: usize, apart: Duration },
    /// A number of calls per second, at random times.
    Open(f64),
}

/// Callers that share one pace.
pub(super) struct Turns<'a> {
    pub(super) pace: &'a Pace,
    pub(super) load: Load,
    /// The time that each worker stays, or that the open load lasts.
    pub(super) stay: Option<Duration>,
    pub(super) latency: Duration,
    /// The resolution of the layer's timer.
    pub(super) timer: Duration,
    /// The most calls that are sent.
    pub(super) most: u32,
}

/// The calls that were sent, and the number of calls that were turned away.
#[derive(Debug, PartialEq)]
pub(super) struct Course {
    pub(super) calls: Vec<Call>,
    pub(super) turned_away: u64,
}

enum Step {
    /// A call of the open load arrives, and schedules the next.
    Come,
    /// A worker calls.
    Enter(usize),
    /// The first call in the queue asks for its turn.
    Turn,
    Answer(usize, SentAt, bool),
}

struct Waiting {
    worker: usize,
    since: u64,
}

impl Turns<'_> {
    pub(super) fn course(&self, mut service: Service, seed: u64) -> Course {
        let (pace, tick) = (self.pace, nanoseconds(self.timer).max(1));
        let throttled = Failure::new(FailureKind::Throttled);
        let (mut moves, mut arrivals) = (CallRandom::of_call(seed, 0), CallRandom::of_call(seed, 1));
        let mut queue = EventQueue::new();
        let mut leaving = Vec::new();
        match self.load {
            Load::Open(_) => queue.after(0, Step::Come),
            Load::Closed { workers, apart } => {
                let mut coming = 0u64;
                for worker in 0..workers {
                    queue.after(coming, Step::Enter(worker));
                    leaving.push(self.leaves(coming));
                    coming = coming.saturating_add(nanoseconds(apart));
                }
            }
        }
        let end = self.leaves(0);
        let mut course = Course { calls: Vec::new(), turned_away: 0 };
        let (mut number, mut progress) = (0, Progress::new(u64::from(self.most)));
        let mut waiting: VecDeque<Waiting> = VecDeque::new();
        // The time at which the timer of the first call in the queue ends.
        let mut timer = u64::MAX;
        while let Some(step) = queue.next() {
            let now = queue.now();
            let entering = match step {
                Step::Come => {
                    let Load::Open(rate) = self.load else { continue };
                    if now >= end {
                        continue;
                    }
                    queue.after(gap(rate, &mut arrivals), Step::Come);
                    Some(0)
                }
                Step::Enter(worker) => leaving.get(worker).is_none_or(|end| now < *end).then_some(worker),
                Step::Turn => {
                    if now >= timer {
                        timer = u64::MAX;
                    }
                    None
                }
                Step::Answer(worker, sent_at, accepted) => {
                    match accepted {
                        true => pace.on_success(sent_at, &mut moves),
                        false => pace.on_failure(sent_at, &throttled, &mut moves),
                    }
                    if matches!(self.load, Load::Closed { .. }) {
                        queue.after(0, Step::Enter(worker));
                    }
                    None
                }
            };
            let time = Duration::from_nanos(now);
            if let Some(worker) = entering {
                let due = pace.turn_due(time, waiting.len());
                if waiting.len() < MOST_WAITING && due <= time + LONGEST_WAIT {
                    waiting.push_back(Waiting { worker, since: now });
                } else {
                    self.turn_away(worker, &mut course, &mut queue);
                }
            }
            while let Some(&Waiting { worker, since }) = waiting.front() {
                if let Err(due) = pace.take_turn(time, 0) {
                    if due > Duration::from_nanos(since) + LONGEST_WAIT {
                        waiting.pop_front();
                        self.turn_away(worker, &mut course, &mut queue);
                        continue;
                    }
                    let due = nanoseconds(due).div_ceil(tick).saturating_mul(tick);
                    if due < timer {
                        timer = due;
                        queue.after(due - now, Step::Turn);
                    }
                    break;
                }
                waiting.pop_front();
                if number == self.most {
                    return course;
                }
                progress.step_of(number);
                number += 1;
                let waited = Duration::from_nanos(now - since);
                if !waited.is_zero() {
                    pace.slept(waited);
                }
                let accepted = service.accepts(now);
                course.calls.push(Call {
                    worker,
                    at: time.as_secs_f64(),
                    delay: waited.as_secs_f64(),
                    accepted,
                    capacity: service.capacity(),
                });
                let answer = Step::Answer(worker, pace.on_send(), accepted);
                queue.after(nanoseconds(self.latency), answer);
            }
        }
        course
    }

    fn turn_away(&self, worker: usize, course: &mut Course, queue: &mut EventQueue<Step>) {
        course.turned_away += 1;
        if matches!(self.load, Load::Closed { .. }) {
            queue.after(nanoseconds(TURNED_AWAY), Step::Enter(worker));
        }
    }

    fn leaves(&self, coming: u64) -> u64 {
        self.stay.map_or(u64::MAX, |stay| coming.saturating_add(nanoseconds(stay)))
    }
}
