//! Tests in virtual time of the share of attempts that reach a dead endpoint.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reattempt_testing::secs;

use super::*;

const US: u64 = 1_000;
const MS: u64 = 1_000 * US;

/// A client that makes 1,000 calls per second. Endpoint "0" refuses after `refuses_after` until it recovers at
/// `well_from`; all others respond after 15 to 25 ms. A failed attempt is retried immediately on another endpoint, at
/// most twice.
struct World {
    set: Set,
    random: Mixed,
    now: u64,
    refuses_after: u64,
    refusal: Health,
    well_from: Duration,
    /// The number of attempts on each endpoint.
    attempts: Vec<u64>,
    failed_calls: u64,
    in_flight: BinaryHeap<Reverse<(u64, u64)>>,
    open: Vec<Option<Attempt>>,
}

struct Attempt {
    ticket: Ticket,
    trail: Trail,
    sent: u64,
    health: Health,
    elsewhere: bool,
}

impl World {
    fn new(length: usize, refuses_after: u64, well_from: Duration) -> Self {
        Self {
            set: set_of(length),
            random: Mixed(length as u64),
            now: 0,
            refuses_after,
            refusal: Health::NotConnected,
            well_from,
            attempts: vec![0; length],
            failed_calls: 0,
            in_flight: BinaryHeap::new(),
            open: Vec::new(),
        }
    }

    fn send(&mut self, mut trail: Trail) {
        let now = Duration::from_nanos(self.now);
        let picked = pick(&self.set, &trail, now, &mut self.random);
        let name: usize = picked.ticket.name().parse().unwrap();
        self.attempts[name] += 1;
        trail.push(picked.ticket.id());
        let (health, takes) = match name == 0 && now < self.well_from {
            true => (self.refusal, self.refuses_after),
            false => (Health::Served, 15 * MS + self.random.below(10 * MS)),
        };
        self.in_flight.push(Reverse((self.now + takes, self.open.len() as u64)));
        let (ticket, elsewhere, sent) = (picked.ticket, picked.elsewhere, self.now);
        self.open.push(Some(Attempt { ticket, trail, sent, health, elsewhere }));
    }

    /// Makes calls until this moment.
    fn run(&mut self, until: Duration) {
        let mut call = self.now;
        while call < u64::try_from(until.as_nanos()).unwrap() {
            while let Some(Reverse((at, number))) = self.in_flight.peek().copied().filter(|next| next.0.0 <= call) {
                self.in_flight.pop();
                self.now = at;
                let attempt = self.open[usize::try_from(number).unwrap()].take().unwrap();
                self.ended(attempt);
            }
            self.now = call;
            self.send(Trail::new());
            call += 500 * US + self.random.below(MS);
        }
        self.now = call;
    }

    fn ended(&mut self, attempt: Attempt) {
        let Attempt { ticket, trail, sent, health, elsewhere } = attempt;
        let over = End::judged(health, Duration::from_nanos(self.now - sent));
        self.set.end_ticket(ticket, &over, Duration::from_nanos(self.now), &mut self.random);
        if health != Health::Served {
            match elsewhere && trail.ids().len() < 3 {
                true => self.send(trail),
                false => self.failed_calls += 1,
            }
        }
    }

    /// Returns the number and the share of attempts on endpoint "0" since the last call to this function.
    fn share(&mut self) -> (u64, f64) {
        let (dead, all) = (self.attempts[0], self.attempts.iter().sum::<u64>());
        self.attempts.fill(0);
        (dead, dead as f64 / all as f64)
    }
}

/// The outcomes of a dead endpoint: it accepts no connection, hangs up, or a proxy answers for it.
const REFUSALS: [Health; 3] = [Health::NotConnected, Health::Lost, Health::Unavailable];

/// A dead endpoint gets at most 60 of the 60,000 calls per minute, and no call fails.
// E-6, C-9
#[test]
fn dead_endpoint_gets_few_calls() {
    for (length, refusal) in [2, 3, 5, 20].into_iter().flat_map(|length| REFUSALS.map(|refusal| (length, refusal))) {
        let mut world = World::new(length, 300 * US, Duration::MAX);
        world.refusal = refusal;
        for minute in 1..=2 {
            world.run(secs(60 * minute));
            let (dead, _) = world.share();
            assert!((1..=60).contains(&dead), "{dead} with {length}, {refusal:?}");
        }
        assert_eq!(world.failed_calls, 0);
    }
}

/// In the two minutes after it recovers, an endpoint gets at least 40 % of its fair share. A recovered route stays
/// postponed until all others fail in okhttp (#8315).
// E-6
#[test]
fn returned_endpoint_gets_its_share() {
    for (length, refusal) in [2, 3, 5, 20].into_iter().flat_map(|length| REFUSALS.map(|refusal| (length, refusal))) {
        let mut world = World::new(length, 300 * US, secs(45));
        world.refusal = refusal;
        world.run(secs(45));
        world.share();
        world.run(secs(165));
        let (_, share) = world.share();
        let fair = 1.0 / length as f64;
        assert!(share > 0.4 * fair && share < 1.1 * fair, "{share} of {length}, {refusal:?}");
    }
}

/// An endpoint that fails within 10 µs gets less than 0.3 % of the first ten seconds' attempts if the others take 20
/// ms.
// E-7
#[test]
fn fast_failure_draws_no_calls() {
    for length in [2, 3, 5, 20] {
        let mut world = World::new(length, 10 * US, Duration::MAX);
        world.run(secs(10));
        let (_, share) = world.share();
        assert!(share < 0.003, "{share} of {length}");
    }
}

/// Without ejections, the price alone keeps a fast-failing endpoint below 2 % of its fair share.
// E-7
#[test]
fn price_alone_draws_no_calls() {
    for length in [2, 3, 5] {
        let mut world = World::new(length, 10 * US, Duration::MAX);
        world.set = Set::new().without_ejections();
        world.set.update((0..length).map(|name| (0, name.to_string())), |_| (), secs(0));
        world.run(secs(60));
        let (_, share) = world.share();
        assert!(share < 0.02 / length as f64, "{share} of {length}");
    }
}
