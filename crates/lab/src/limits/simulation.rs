//! One client with a limit before a server of finite capacity, in virtual time.
//!
//! The server has workers and a queue before them. It processes every request that it has queued, even if the client
//! has stopped waiting, and refuses requests past the queue.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use reattempt::guard::contract::{Admit, Arrival, BodyEnd, End, Guard, Health};
use reattempt::schedule::CallRandom;

use super::scene::Phase;
use crate::chance::{fraction, gap};
use crate::events::{EventQueue, nanoseconds};
use crate::progress::Progress;
use crate::text;

/// The conditions that all rules share.
#[derive(Debug, Clone, Copy)]
pub(super) struct World<'a> {
    pub(super) phases: &'a [Phase],
    /// The requests that may wait before the workers.
    pub(super) queue: usize,
    /// The time that the client waits for an answer.
    pub(super) timeout: Duration,
    pub(super) seed: u64,
}

/// The calls of one second, by their ends.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Second {
    /// The limit at its end.
    pub(super) limit: u32,
    /// The requests that the server can answer in it.
    pub(super) capacity: f64,
    /// Calls that arrived.
    pub(super) calls: u32,
    /// Calls that the limit refused.
    pub(super) refused: u32,
    /// Calls that the server refused or did not answer in time.
    pub(super) dropped: u32,
    /// Calls that failed at once.
    pub(super) failed: u32,
    /// The latencies of the calls that were served.
    pub(super) latencies: Vec<Duration>,
}

/// The time of a refusal or a failure.
const AT_ONCE: Duration = Duration::from_millis(1);

const SERVER: &str = "server";
const SECOND: u64 = 1_000_000_000;

enum Event {
    Call,
    /// A worker has finished a request.
    Done(u64),
    /// A request fails at once, or is refused.
    Fails(u64, Health),
    Timeout(u64),
}

struct Run<'a, G: Guard> {
    world: World<'a>,
    guard: &'a G,
    queue: EventQueue<Event>,
    /// The attempts that the client waits for.
    open: HashMap<u64, (G::Ticket, u64)>,
    /// The requests that wait for a worker, each with the random numbers of its work.
    waiting: VecDeque<(u64, [f64; 2])>,
    busy: u32,
    seconds: Vec<Second>,
}

/// Runs the scene. `limit` returns the limit of the guard.
pub(super) fn simulate<G: Guard>(
    world: World<'_>,
    guard: &G,
    limit: impl Fn(&G, Duration) -> u32,
    progress: &mut Progress,
) -> Vec<Second> {
    let mut run = Run {
        world,
        guard,
        queue: EventQueue::new(),
        open: HashMap::new(),
        waiting: VecDeque::new(),
        busy: 0,
        seconds: Vec::new(),
    };
    // The load and the work of every call are drawn as it arrives, so that all rules meet the same calls.
    let [mut arrivals, mut work] = [0, 1].map(|stream| CallRandom::of_call(world.seed, stream));
    let (mut number, mut last) = (0, 0);
    run.queue.after(gap(world.phases[0].load, &mut arrivals), Event::Call);
    while let Some(event) = run.queue.next() {
        let now = run.queue.now();
        while last < now / SECOND {
            let at = limit(guard, Duration::from_nanos((last + 1) * SECOND));
            run.second(last).limit = at;
            (last, ()) = (last + 1, progress.step());
        }
        let Some((phase, _)) = run.phase(now) else { break };
        match event {
            Event::Call => {
                run.queue.after(gap(phase.load, &mut arrivals), Event::Call);
                number += 1;
                let drawn = [fraction(&mut work), fraction(&mut work)];
                run.call(number, drawn, phase);
            }
            Event::Done(id) => {
                run.busy -= 1;
                run.end_attempt(id, Health::Served);
                run.work();
            }
            Event::Fails(id, health) => run.end_attempt(id, health),
            Event::Timeout(id) => run.end_attempt(id, Health::Unavailable),
        }
    }
    run.seconds
}

impl<G: Guard> Run<'_, G> {
    /// Returns the phase at this time, and the place in it from 0 to 1.
    fn phase(&self, now: u64) -> Option<(Phase, f64)> {
        let mut start = 0.0;
        let now = Duration::from_nanos(now).as_secs_f64();
        for phase in self.world.phases {
            let seconds = f64::from(phase.seconds);
            if now < start + seconds {
                return Some((*phase, (now - start) / seconds));
            }
            start += seconds;
        }
        None
    }

    fn second(&mut self, number: u64) -> &mut Second {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        while self.seconds.len() <= index {
            let middle = self.seconds.len() as u64 * SECOND + SECOND / 2;
            let capacity = self.phase(middle).map_or(0.0, |(phase, place)| phase.capacity(place));
            self.seconds.push(Second { capacity, ..Second::default() });
        }
        &mut self.seconds[index]
    }

    fn call(&mut self, id: u64, drawn: [f64; 2], phase: Phase) {
        let now = self.queue.now();
        self.second(now / SECOND).calls += 1;
        let arrival = Arrival::new(SERVER, Duration::from_nanos(now)).impatient();
        let (Admit::Admitted(ticket) | Admit::Waiting(ticket)) = self.guard.admit(&arrival) else {
            self.second(now / SECOND).refused += 1;
            return;
        };
        self.open.insert(id, (ticket, now));
        if phase.fails {
            self.queue.after(nanoseconds(AT_ONCE), Event::Fails(id, Health::Failed));
        } else if self.waiting.len() >= self.world.queue && self.busy >= phase.workers {
            self.queue.after(nanoseconds(AT_ONCE), Event::Fails(id, Health::Unavailable));
        } else {
            self.waiting.push_back((id, drawn));
            self.queue.after(nanoseconds(self.world.timeout), Event::Timeout(id));
            self.work();
        }
    }

    /// Lets free workers begin the requests that wait.
    fn work(&mut self) {
        let Some((phase, place)) = self.phase(self.queue.now()) else { return };
        while self.busy < phase.workers {
            let Some((id, drawn)) = self.waiting.pop_front() else { return };
            self.busy += 1;
            let time = text::seconds(phase.service_time(place, drawn));
            self.queue.after(nanoseconds(time), Event::Done(id));
        }
    }

    /// Ends an attempt, unless it has ended before.
    fn end_attempt(&mut self, id: u64, health: Health) {
        let Some((ticket, sent)) = self.open.remove(&id) else { return };
        let now = self.queue.now();
        let (after, time) = (Duration::from_nanos(now - sent), Duration::from_nanos(now));
        if let Some(held) = self.guard.end_ticket(ticket, &End::judged(health, after), time) {
            drop(self.guard.end_ticket(held, &End::Over(BodyEnd::Complete), time));
        }
        let second = self.second(now / SECOND);
        match health {
            Health::Served => second.latencies.push(after),
            Health::Failed => second.failed += 1,
            _ => second.dropped += 1,
        }
    }
}
