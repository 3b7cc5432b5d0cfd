//! One client before several servers of finite capacity, in virtual time.
//!
//! Each server has workers and a queue. It refuses requests past the queue, and refuses connections while it is dead.
//! The library's call decides on retries. A retry that can go elsewhere after no answer is sent at once.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use reattempt::guard::contract::{End, Health};
use reattempt::profile;
use reattempt::schedule::{CallRandom, Delays, SharedSchedule};
use reattempt::{RetryBudget, Verdict};
use reattempt_core::{Account, Call, CallEnd, Decision, FailedAttempt, Failure, FailureKind, Limits, Terms};
use serde::Serialize;

use super::rules::{Choice, Rule, Tried, Which};
use super::scene::{Scene, State};
use crate::chance::{fraction, gap};
use crate::events::{EventQueue, nanoseconds};
use crate::progress::Progress;
use crate::text;

/// Requests that a server processes in parallel, the mean time of one in seconds, and those that may wait.
pub(super) const WORKERS: usize = 4;
pub(super) const SERVICE: f64 = 0.02;
const QUEUE: usize = 64;
/// The factor by which a cold server is slower, and the time from its first request until it is warm.
const COLD: f64 = 10.0;
const WARMS_UP: u64 = 20 * SECOND;
/// The time of a refusal.
const AT_ONCE: Duration = Duration::from_micros(300);
/// The client gives an attempt up after this time.
const TIMEOUT: Duration = Duration::from_secs(1);
const SECOND: u64 = 1_000_000_000;
const SERVICE_NAME: &str = "service";

/// The conditions that all rules share.
#[derive(Debug, Clone, Copy)]
pub(super) struct World {
    pub(super) scene: Scene,
    /// Calls a second.
    pub(super) rate: f64,
    /// The seconds before the fault, of the fault, and after it.
    pub(super) seconds: [u64; 3],
    pub(super) seed: u64,
}

/// The calls that begin in a second, and the attempts that are sent in it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Second {
    pub(super) calls: u32,
    pub(super) succeeded: u32,
    pub(super) attempts: u32,
    /// Attempts at servers that the scene makes faulty.
    pub(super) at_faulty: u32,
}

/// The result of one rule.
#[derive(Debug, Default)]
pub(super) struct Course {
    pub(super) seconds: Vec<Second>,
    /// The latencies of calls that began during the fault and succeeded.
    pub(super) latencies: Vec<Duration>,
    /// Attempts at each server during the fault.
    pub(super) by_server: Vec<u64>,
}

enum Event {
    Arrives,
    /// A worker has finished an attempt.
    Done {
        server: usize,
        attempt: u64,
    },
    Refused(u64, Refusal),
    Timeout(u64),
    Retry(u64),
    /// The caller gives up.
    GivenUp(u64),
    /// A server goes on after a stop.
    GoesOn(usize),
}

#[derive(Debug, Clone, Copy)]
enum Refusal {
    Connection,
    QueueFull,
}

struct Server {
    state: State,
    busy: usize,
    waiting: VecDeque<u64>,
    /// The time of its first request after the fault.
    returned: Option<u64>,
    /// `true` if it has received a request in the fault.
    was_slow: bool,
}

struct Attempt {
    call: u64,
    choice: Choice,
    sent: u64,
}

struct Client {
    started: u64,
    random: CallRandom,
    tried: Tried,
    retries: Option<Call<Box<dyn Delays + Send>>>,
}

struct Run {
    world: World,
    rule: Rule,
    servers: Vec<Server>,
    queue: EventQueue<Event>,
    calls: HashMap<u64, Client>,
    attempts: HashMap<u64, Attempt>,
    sent: u64,
    schedule: SharedSchedule,
    terms: Terms,
    budget: RetryBudget,
    /// The random numbers of the rule, and of the servers.
    random: CallRandom,
    work: CallRandom,
    course: Course,
}

/// Runs a scene under a rule.
pub(super) fn simulate(world: World, which: Which, progress: &mut Progress) -> Course {
    let states = world.scene.servers();
    let standard = profile::standard().shared();
    let mut limits = Limits::default();
    (limits.max_attempts, limits.max_elapsed) = (standard.max_attempts, standard.max_elapsed);
    let [mut arrivals, random, work] = [0, 1, 2].map(|stream| CallRandom::of_call(world.seed, stream));
    let by_server = vec![0; states.len()];
    let mut run = Run {
        world,
        rule: which.rule(states.len(), world.scene.first_tier()),
        servers: states
            .into_iter()
            .map(|state| Server { state, busy: 0, waiting: VecDeque::new(), returned: None, was_slow: false })
            .collect(),
        queue: EventQueue::new(),
        calls: HashMap::new(),
        attempts: HashMap::new(),
        sent: 0,
        schedule: standard.schedule,
        terms: Terms::new(limits),
        budget: RetryBudget::default().shared(true),
        random,
        work,
        course: Course { by_server, ..Course::default() },
    };
    let end = world.seconds.iter().sum::<u64>() * SECOND;
    let mut number = 0;
    run.queue.after(gap(world.rate, &mut arrivals), Event::Arrives);
    while let Some(event) = run.queue.next() {
        match event {
            Event::Arrives if run.queue.now() < end => {
                run.queue.after(gap(world.rate, &mut arrivals), Event::Arrives);
                run.begin(number, progress);
                number += 1;
            }
            Event::Arrives => {}
            Event::Done { server, attempt } => run.done(server, attempt),
            Event::Refused(attempt, Refusal::Connection) => {
                let failure = Failure::new(FailureKind::Connect);
                run.end_attempt(attempt, Health::NotConnected, Verdict::NotProcessed(failure));
            }
            Event::Refused(attempt, Refusal::QueueFull) => {
                let failure = Failure::new(FailureKind::Server).with_code(503);
                run.end_attempt(attempt, Health::Unavailable, Verdict::Transient(failure));
            }
            Event::Timeout(attempt) => {
                let failure = Failure::new(FailureKind::Timeout);
                run.end_attempt(attempt, Health::Unavailable, Verdict::Transient(failure));
            }
            Event::GivenUp(attempt) => run.give_up(attempt),
            Event::GoesOn(server) => run.work(server),
            Event::Retry(call) => {
                if let Some(retries) = run.calls.get_mut(&call).and_then(|call| call.retries.as_mut()) {
                    retries.on_send();
                }
                run.send(call);
            }
        }
    }
    run.course
}

impl World {
    /// Returns `true` during the fault.
    pub(super) fn is_fault(&self, now: u64) -> bool {
        let [before, fault, _] = self.seconds;
        (before * SECOND..(before + fault) * SECOND).contains(&now)
    }

    fn is_after_fault(&self, now: u64) -> bool {
        let [before, fault, _] = self.seconds;
        now >= (before + fault) * SECOND
    }
}

impl Run {
    fn second(&mut self, now: u64) -> &mut Second {
        let index = usize::try_from(now / SECOND).unwrap_or(usize::MAX);
        let seconds = &mut self.course.seconds;
        if seconds.len() <= index {
            seconds.resize(index + 1, Second::default());
        }
        &mut seconds[index]
    }

    fn state(&self, server: usize) -> State {
        let (now, server) = (self.queue.now(), &self.servers[server]);
        match (server.state, self.world.is_fault(now)) {
            (State::Cold, true) => State::Refuses,
            (State::Cold, false) if server.returned.is_some_and(|at| now < at + WARMS_UP) => State::Slow(COLD),
            (state, true) => state,
            (_, false) => State::Well,
        }
    }

    fn begin(&mut self, number: u64, progress: &mut Progress) {
        let now = self.queue.now();
        let known = self.course.seconds.len();
        self.second(now).calls += 1;
        (known..self.course.seconds.len()).for_each(|_| progress.step());
        let random = CallRandom::of_call(self.world.seed, number + 3);
        let client = Client { started: now, random, tried: Tried::default(), retries: None };
        self.calls.insert(number, client);
        self.send(number);
    }

    fn send(&mut self, call: u64) {
        let now = self.queue.now();
        let Some(client) = self.calls.get_mut(&call) else { return };
        let time = Duration::from_nanos(now);
        let choice = self.rule.pick(&mut client.tried, time, &mut self.random);
        let (server, attempt) = (choice.server, self.sent);
        self.sent += 1;
        let faulty = self.servers[server].state != State::Well;
        let second = self.second(now);
        second.attempts += 1;
        second.at_faulty += u32::from(faulty);
        self.course.by_server[server] += u64::from(self.world.is_fault(now));
        if self.world.is_after_fault(now) {
            self.servers[server].returned.get_or_insert(now);
        }
        self.attempts.insert(attempt, Attempt { call, choice, sent: now });
        if self.state(server) == State::Refuses {
            self.queue.after(nanoseconds(AT_ONCE), Event::Refused(attempt, Refusal::Connection));
        } else if self.state(server) == State::Silent {
            self.queue.after(nanoseconds(TIMEOUT), Event::GivenUp(attempt));
        } else if self.servers[server].waiting.len() >= QUEUE {
            self.queue.after(nanoseconds(AT_ONCE), Event::Refused(attempt, Refusal::QueueFull));
        } else {
            self.servers[server].waiting.push_back(attempt);
            self.queue.after(nanoseconds(TIMEOUT), Event::Timeout(attempt));
            self.work(server);
        }
    }

    /// Lets free workers begin the requests that wait.
    fn work(&mut self, server: usize) {
        if let Some(until) = self.stops_until(server) {
            return self.queue.after(until - self.queue.now(), Event::GoesOn(server));
        }
        let factor = match self.state(server) {
            State::SlowOnce(factor) if !std::mem::replace(&mut self.servers[server].was_slow, true) => factor,
            State::Slow(factor) => factor,
            _ => 1.0,
        };
        while self.servers[server].busy < WORKERS {
            let Some(attempt) = self.servers[server].waiting.pop_front() else { return };
            self.servers[server].busy += 1;
            let time = SERVICE * factor * (0.5 + fraction(&mut self.work));
            self.queue.after(nanoseconds(text::seconds(time)), Event::Done { server, attempt });
        }
    }

    fn done(&mut self, server: usize, attempt: u64) {
        if let Some(until) = self.stops_until(server) {
            return self.queue.after(until - self.queue.now(), Event::Done { server, attempt });
        }
        let fails = match self.state(server) {
            State::Fails(share) => fraction(&mut self.work) < share,
            _ => false,
        };
        if self.state(server) == State::Refuses {
            // The server died during the work.
            let failure = Failure::new(FailureKind::Network);
            self.end_attempt(attempt, Health::Lost, Verdict::Transient(failure));
        } else if fails {
            let failure = Failure::new(FailureKind::Server).with_code(503);
            self.end_attempt(attempt, Health::Unavailable, Verdict::Transient(failure));
        } else {
            self.end_attempt(attempt, Health::Served, Verdict::Success);
        }
        self.servers[server].busy -= 1;
        self.work(server);
    }

    /// Returns the time at which a server goes on that stops now.
    fn stops_until(&self, server: usize) -> Option<u64> {
        let now = self.queue.now();
        let [before, fault, _] = self.world.seconds;
        match self.state(server) {
            State::Stopped => Some((before + fault) * SECOND),
            State::Pauses(from) => {
                let since = (now / SECOND - before) % 60;
                (since == from).then(|| (now / SECOND + 1) * SECOND)
            }
            _ => None,
        }
    }

    /// The caller drops the call with its attempt.
    fn give_up(&mut self, attempt: u64) {
        let Some(Attempt { call, choice, sent }) = self.attempts.remove(&attempt) else { return };
        let now = self.queue.now();
        let [after, time] = [now - sent, now].map(Duration::from_nanos);
        self.rule.end_attempt(choice, &End::Abandoned { after }, after, time, &mut self.random);
        if let Some(retries) = self.calls.remove(&call).and_then(|client| client.retries) {
            let mut retries = retries;
            retries.take_account().settle(CallEnd::Failed, SERVICE_NAME, &self.budget);
        }
    }

    /// Ends an attempt, unless the client has given it up.
    fn end_attempt(&mut self, attempt: u64, health: Health, verdict: Verdict) {
        let Some(Attempt { call, choice, sent }) = self.attempts.remove(&attempt) else { return };
        let now = self.queue.now();
        let [after, time] = [now - sent, now].map(Duration::from_nanos);
        let elsewhere = choice.elsewhere;
        self.rule.end_attempt(choice, &End::judged(health, after), after, time, &mut self.random);
        match verdict.failure() {
            None => self.succeed(call),
            // A failure with a code is an answer.
            Some(failure) => {
                let elsewhere = elsewhere && failure.code().is_none();
                self.fail(call, verdict, elsewhere, (Duration::from_nanos(sent), time));
            }
        }
    }

    fn succeed(&mut self, call: u64) {
        let Some(mut client) = self.calls.remove(&call) else { return };
        let account = client.retries.as_mut().map_or_else(Account::default, Call::take_account);
        account.settle(CallEnd::Succeeded, SERVICE_NAME, &self.budget);
        self.second(client.started).succeeded += 1;
        if self.world.is_fault(client.started) {
            let latency = Duration::from_nanos(self.queue.now() - client.started);
            self.course.latencies.push(latency);
        }
    }

    fn fail(&mut self, call: u64, verdict: Verdict, elsewhere: bool, (sent, now): (Duration, Duration)) {
        let Some(client) = self.calls.get_mut(&call) else { return };
        let retries = client.retries.get_or_insert_with(|| Call::new(&self.schedule));
        let elapsed = now.saturating_sub(Duration::from_nanos(client.started));
        let failed = FailedAttempt::new(verdict, SERVICE_NAME, now);
        let failed = failed.elapsed(elapsed).elsewhere(elsewhere).sent(sent);
        let decision = retries.failed(&self.terms, &failed, &self.schedule, &self.budget, &mut client.random);
        match decision {
            Decision::Retry { after } => self.queue.after(nanoseconds(after), Event::Retry(call)),
            // The attempt moves to another server.
            Decision::Resend => self.queue.after(0, Event::Retry(call)),
            _ => {
                retries.take_account().settle(CallEnd::Failed, SERVICE_NAME, &self.budget);
                self.calls.remove(&call);
            }
        }
    }
}
