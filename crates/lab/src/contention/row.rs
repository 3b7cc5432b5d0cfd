//! A simulation of the row, the network and the clients, in virtual time.
//!
//! Input: a schedule, a number of clients, a seed. Output: the number of calls, and the time at
//! which the last client had its answer. The engine decides whether and when a client tries again.
//! The row has no other failures, so there are no limits and no budget.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use rand_distr::{Distribution, Normal};
use reattempt::Verdict;
use reattempt::budget::Unlimited;
use reattempt::retry::Limits;
use reattempt::schedule::{CallRandom, Failure, FailureKind, Schedule, SharedSchedule};
use reattempt_core::{Call, Decision, FailedAttempt, Terms};

use crate::error::LabError;
use crate::events::{EventQueue, nanoseconds};

/// The distribution of the time that a message takes, one way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Network {
    /// The delay in nanoseconds.
    delay: Normal<f64>,
}

impl Network {
    /// Creates delays of this mean and standard deviation; a draw below zero is zero.
    pub(super) fn new(mean: Duration, deviation: Duration) -> Result<Self, LabError> {
        let nanoseconds = |duration: Duration| duration.as_secs_f64() * 1e9;
        let delay = Normal::new(nanoseconds(mean), nanoseconds(deviation));
        Ok(Self { delay: delay.map_err(LabError::new)? })
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the cast saturates, and below zero it gives zero"
    )]
    fn draw(&self, random: &mut SmallRng) -> u64 {
        self.delay.sample(random).round() as u64
    }
}

/// The result of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// The tries of all clients.
    pub(super) calls: u64,
    /// The time at which the last client had its answer, in nanoseconds.
    pub(super) at: u64,
}

/// One run of the simulation.
pub(super) struct Row<'a> {
    schedule: &'a SharedSchedule,
    network: Network,
    network_random: SmallRng,
    queue: EventQueue<(usize, Step)>,
    clients: Vec<Client>,
    version: u64,
    calls: u64,
}

/// The next step of a client.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The client sends its read.
    Begin,
    /// The read reaches the row.
    Read,
    /// The write reaches the row, with the version that was read.
    Write(u64),
    /// The client receives the refusal of its write.
    Refused,
    /// The client receives the confirmation of its write.
    Written,
}

/// The engine's state for a client.
struct Client {
    random: CallRandom,
    call: Option<Call<<SharedSchedule as Schedule>::Delays>>,
}

impl<'a> Row<'a> {
    /// Creates a run in which all clients begin at time 0.
    pub(super) fn new(schedule: &'a SharedSchedule, network: Network, clients: u32, seed: u64, run: u32) -> Self {
        // Each run has calls of its own, numbered from `first`.
        let first = u64::from(run) << 32;
        let client = |number| Client { random: CallRandom::of_call(seed, first + number), call: None };
        let clients: Vec<_> = (1..=u64::from(clients)).map(client).collect();
        let mut queue = EventQueue::new();
        (0..clients.len()).for_each(|client| queue.after(0, (client, Step::Begin)));
        let mut network_seed = CallRandom::of_call(seed, first);
        let network_random = SmallRng::seed_from_u64(reattempt::schedule::Random::next_u64(&mut network_seed));
        Self { schedule, network, network_random, queue, clients, version: 0, calls: 0 }
    }

    /// Runs until every client has written.
    pub(super) fn run(mut self) -> End {
        let mut end = 0;
        while let Some((client, step)) = self.queue.next() {
            match step {
                Step::Begin => {
                    self.calls += 1;
                    self.send(client, 1, Step::Read);
                }
                // The answer goes back and the write comes in, so the message delay counts twice.
                Step::Read => self.send(client, 2, Step::Write(self.version)),
                Step::Write(read) if read == self.version => {
                    self.version += 1;
                    self.send(client, 1, Step::Written);
                }
                Step::Write(_) => self.send(client, 1, Step::Refused),
                Step::Refused => self.refused(client),
                Step::Written => end = self.queue.now(),
            }
        }
        End { calls: self.calls, at: end }
    }

    fn send(&mut self, client: usize, ways: u32, step: Step) {
        let delay = (0..ways).fold(0, |sum: u64, _| sum.saturating_add(self.network.draw(&mut self.network_random)));
        self.queue.after(delay, (client, step));
    }

    fn refused(&mut self, number: usize) {
        let mut limits = Limits::default();
        limits.max_attempts = u32::MAX;
        limits.max_elapsed = None;
        let Some(client) = self.clients.get_mut(number) else { return };
        let now = Duration::from_nanos(self.queue.now());
        // A refused write has changed nothing.
        let verdict = Verdict::NotProcessed(Failure::new(FailureKind::Other));
        let failed = FailedAttempt::new(verdict, "row", now).elapsed(now).sent_at(self.schedule.on_send());
        let call = client.call.get_or_insert_with(|| Call::new(self.schedule));
        let decision = call.failed(&Terms::new(limits), &failed, self.schedule, &Unlimited, &mut client.random);
        if let Decision::Retry { after } = decision {
            call.on_send();
            self.queue.after(nanoseconds(after), (number, Step::Begin));
        }
    }
}
