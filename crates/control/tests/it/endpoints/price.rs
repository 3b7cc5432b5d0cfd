//! Tests of the price: how long a slow or silent endpoint is remembered, and how evenly equal ones are used.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reattempt_testing::secs;

use super::*;

const MS: u64 = 1_000_000;

/// The end of an attempt, with the time that it takes in nanoseconds.
#[derive(Debug, Clone, Copy)]
enum Reply {
    Served(u64),
    /// The caller gives up.
    Dropped(u64),
}

/// A client in virtual time that makes calls at random times.
struct Client<'a> {
    set: Set,
    random: Mixed,
    /// The mean time between calls.
    gap: u64,
    now: u64,
    /// The reply of an endpoint to a request that is sent at this time.
    replies: Box<dyn FnMut(usize, u64) -> Reply + 'a>,
    in_flight: BinaryHeap<Reverse<(u64, usize)>>,
    open: Vec<Option<(Ticket, End)>>,
    picks: Vec<u32>,
    lost: u32,
}

impl<'a> Client<'a> {
    fn new(length: usize, per_second: u64, replies: impl FnMut(usize, u64) -> Reply + 'a) -> Self {
        Self {
            set: set_of(length),
            random: Mixed(length as u64),
            gap: 1000 * MS / per_second,
            now: 0,
            replies: Box::new(replies),
            in_flight: BinaryHeap::new(),
            open: Vec::new(),
            picks: vec![0; length],
            lost: 0,
        }
    }

    /// Makes calls for so many milliseconds, and returns the number of picks of each endpoint in that time.
    fn run(&mut self, milliseconds: u64) -> Vec<u32> {
        let until = self.now + milliseconds * MS;
        self.picks.fill(0);
        while self.now < until {
            self.end_until(self.now);
            self.send();
            self.now += self.random.below(2 * self.gap) + 1;
        }
        self.picks.clone()
    }

    fn send(&mut self) {
        let ticket = pick(&self.set, &Trail::new(), Duration::from_nanos(self.now), &mut self.random).ticket;
        let endpoint: usize = ticket.name().parse().unwrap();
        self.picks[endpoint] += 1;
        let (takes, end) = match (self.replies)(endpoint, self.now) {
            Reply::Served(takes) => (takes, End::judged(Health::Served, Duration::from_nanos(takes))),
            Reply::Dropped(takes) => (takes, End::Abandoned { after: Duration::from_nanos(takes) }),
        };
        self.in_flight.push(Reverse((self.now + takes, self.open.len())));
        self.open.push(Some((ticket, end)));
    }

    fn end_until(&mut self, now: u64) {
        while let Some(Reverse((at, number))) = self.in_flight.peek().copied().filter(|next| next.0.0 <= now) {
            self.in_flight.pop();
            let (ticket, end) = self.open[number].take().unwrap();
            self.lost += u32::from(matches!(end, End::Abandoned { .. }));
            end_ticket(&self.set, ticket, &end, Duration::from_nanos(at));
        }
    }
}

/// Returns a service time of 1.5 to 2.5 ms, which depends on the request's time.
fn two_ms(now: u64) -> Reply {
    Reply::Served(3 * MS / 2 + Mixed(now).below(MS))
}

/// After one answer of 500 ms beside others of 2 ms, or one call that its caller gives up after 2 s, an endpoint has at
/// least half of its fair share in the next ten seconds.
// P-1, P-2, field 34, trap 68
#[test]
fn slow_answer_is_soon_forgotten() {
    for (length, per_second) in [(3, 60), (20, 200)] {
        for slow in [Reply::Served(500 * MS), Reply::Dropped(2000 * MS)] {
            let mut once = Some(slow);
            let mut client = Client::new(length, per_second, |endpoint, now| match endpoint {
                0 if now >= 10_000 * MS => once.take().unwrap_or_else(|| two_ms(now)),
                _ => two_ms(now),
            });
            client.run(12_500);
            let after = client.run(10_000);
            let fair = after.iter().sum::<u32>() as usize / length;
            assert!(after[0] as usize * 2 >= fair, "{after:?} after {slow:?}");
        }
    }
}

/// An endpoint that has paused lately does not drive the calls to one that has not, which pauses in turn.
// P-1, P-3, trap 68
#[test]
fn pauses_draw_no_crowd() {
    // Each of three endpoints pauses for a second each minute, at its own time. It answers those calls afterwards.
    let pause = |endpoint: usize, now: u64| {
        let from = (now / MS + 60_000 - 20_000 * endpoint as u64) % 60_000;
        1000_u64.saturating_sub(from) * MS
    };
    let mut slow = 0;
    let mut client = Client::new(3, 300, |endpoint, now| {
        let takes = pause(endpoint, now) + MS + Mixed(now).below(2 * MS);
        slow += u32::from(takes > 40 * MS && now > 60_000 * MS);
        Reply::Served(takes)
    });
    let calls: u32 = [60_000, 120_000].map(|time| client.run(time).iter().sum())[1];
    drop(client);
    // Every pause is met by a few calls, which make the endpoint expensive.
    assert!(slow * 500 < calls, "{slow} of {calls}");
}

/// An endpoint that never answers costs one or two of 200 calls, whose callers give up after a second.
// P-7, field 33, trap 69
#[test]
fn silent_endpoint_gets_few_calls() {
    for (length, per_second) in [(2, 20), (3, 50), (5, 50)] {
        let mut client = Client::new(length, per_second, |endpoint, now| match endpoint {
            0 => Reply::Dropped(1000 * MS),
            _ => two_ms(now),
        });
        client.run(10_000);
        client.end_until(u64::MAX);
        assert!((1..=2).contains(&client.lost), "{} with {length}", client.lost);
    }
}

/// If many endpoints never answer, each of them gets a single call, although two of them are often compared.
// P-7, trap 69
#[test]
fn many_silent_ones_get_few_calls() {
    for (silent, length, per_second) in [(2, 3, 50), (20, 50, 200)] {
        let mut client = Client::new(length, per_second, |endpoint, now| match endpoint < silent {
            true => Reply::Dropped(1000 * MS),
            false => two_ms(now),
        });
        client.run(10_000);
        client.end_until(u64::MAX);
        assert!(client.lost as usize <= silent + 2, "{} with {silent} of {length}", client.lost);
    }
}

/// A call that was dropped after a microsecond changes no share.
// P-7, E-11
#[test]
fn short_drop_changes_no_share() {
    let mut dropped = Some(Reply::Dropped(1000));
    let mut client = Client::new(3, 100, |endpoint, now| match endpoint {
        0 => dropped.take().unwrap_or_else(|| two_ms(now)),
        _ => two_ms(now),
    });
    let picks = client.run(30_000);
    let fair = picks.iter().sum::<u32>() / 3;
    assert!(picks.iter().all(|count| count.abs_diff(fair) * 10 < fair), "{picks:?}");
}

/// Equal endpoints get equal numbers of calls, also in the first seconds of a client.
// P-4
#[test]
fn equal_endpoints_share_the_calls() {
    for (length, per_second, first, later) in
        [(3, 60, 1.5, 1.2), (3, 200, 1.3, 1.2), (20, 200, 3.0, 1.5), (100, 200, 30.0, 2.5)]
    {
        let mut client = Client::new(length, per_second, |_, now| two_ms(now));
        let ratio =
            |picks: &[u32]| f64::from(*picks.iter().max().unwrap()) / f64::from((*picks.iter().min().unwrap()).max(1));
        client.run(2_000);
        let seen = ratio(&client.run(4_000));
        assert!(seen <= first, "{seen} of {length} in the first seconds");
        let seen = ratio(&client.run(30_000));
        assert!(seen <= later, "{seen} of {length}");
    }
}

/// An endpoint that becomes a hundred times slower is known after four or five answers: then it counts as eight times
/// slower, and later as what it is.
// P-2, P-3
#[test]
fn slow_endpoint_is_known_after_five() {
    let set = set_of(2);
    for name in ["0", "1"] {
        judge(&set, name, Health::Served, ms(0));
    }
    for answers in 1..=5 {
        let ticket = ticket_of(&set, "0", ms(1));
        end_ticket(&set, ticket, &End::judged(Health::Served, ms(100)), ms(1));
        let latency = view(&set, "0", ms(1)).latency.unwrap();
        assert!(latency.abs_diff(ms(1 << answers)) < Duration::from_micros(20), "{latency:?}");
    }
    assert_eq!(held_before(&set, "0", ms(1)), 8);
}

/// Returns the number of calls in flight at the other endpoint when this one is picked. Of equal prices, the first that
/// is drawn is picked.
fn held_before(set: &Set, name: &str, now: Duration) -> usize {
    let (mut held, mut random) = (Vec::new(), Mixed(5));
    loop {
        let ticket = pick(set, &Trail::new(), now, &mut random).ticket;
        if &**ticket.name() == name || held.len() > 1000 {
            return held.len();
        }
        held.push(ticket);
    }
}

/// Latencies that differ by at most half of the smaller one are equal. Then only the calls in flight decide.
// P-4
#[test]
fn similar_latencies_are_equal() {
    for (slower, is_equal) in [(ms(100), true), (ms(149), true), (ms(152), false), (ms(700), false)] {
        let set = set_of(2);
        for (name, latency) in [("0", slower), ("1", ms(100))] {
            let ticket = ticket_of(&set, name, ms(0));
            end_ticket(&set, ticket, &End::judged(Health::Served, latency), ms(1));
        }
        let drawn = |seed| pick(&set, &Trail::new(), ms(1), &mut Mixed(seed)).ticket.name().to_string();
        let slow = (0..1000).filter(|seed| drawn(*seed) == "0").count();
        assert_eq!(slow > 0, is_equal, "{slow} of 1000 with {slower:?}");
    }
}

/// A return from an ejection forgets the latency and the failure rate. One call at a time then measures the latency.
/// Calls that were open at the return measure nothing, so they keep no other call away.
// P-5
#[test]
fn return_forgets_the_price() {
    for open in [0, 3] {
        let set = set_of(2);
        (0..2).for_each(|name| drop(judge(&set, &name.to_string(), Health::Served, ms(1))));
        let streams: Vec<_> = (0..open).map(|_| ticket_of(&set, "0", ms(1))).collect();
        kill(&set, "0", ms(1));
        assert!(view(&set, "0", secs(4)).latency.is_some());
        drop(pick(&set, &Trail::new(), secs(6), &mut Mixed(1)));
        let back = view(&set, "0", secs(6));
        assert_eq!((back.latency, back.failing, back.out), (None, 0.0, None));
        let mut random = Mixed(1);
        let held: Vec<_> = (0..100).map(|_| pick(&set, &Trail::new(), secs(6), &mut random).ticket).collect();
        assert_eq!(held.iter().filter(|ticket| &**ticket.name() == "0").count(), 1, "with {open} open");
        drop(held);
        // Before its first success, one failure ejects it again.
        let events = judge(&set, "0", Health::Failed, secs(6));
        assert!(matches!(events[..], [EndpointEvent::Ejected { .. }]), "{events:?}");
        drop(streams);
    }
}

/// An endpoint that stayed in service as one of a failing majority keeps its price, and so does one that comes back
/// because most fail.
// P-5, E-20
#[test]
fn majority_keeps_its_prices() {
    let set = set_of(3);
    kill_all(&set, &["0", "1"], ms(1));
    assert!(out(&set, ms(2)).is_empty());
    assert!(["0", "1"].iter().all(|name| view(&set, name, ms(2)).failing > 0.4));
    drop(pick(&set, &Trail::new(), secs(6), &mut Mixed(1)));
    assert!(["0", "1"].iter().all(|name| view(&set, name, secs(6)).failing > 0.1));
}

/// A lower bound is kept over attempts that are shorter, decays, and ends with the first answer.
// P-7, E-14
#[test]
fn lower_bound_is_raised_and_decays() {
    let set = set_of(2);
    judge(&set, "1", Health::Served, ms(0));
    let cheap = |now| {
        let drawn = |seed| pick(&set, &Trail::new(), now, &mut Mixed(seed)).ticket.name().to_string();
        (0..100).filter(|seed| drawn(*seed) == "0").count()
    };
    let abandon = |after, now| {
        let ticket = ticket_of(&set, "0", now);
        end_ticket(&set, ticket, &End::Abandoned { after }, now);
    };
    abandon(secs(1), secs(1));
    assert_eq!((cheap(secs(1)), view(&set, "0", secs(1)).latency), (0, None));
    // A shorter attempt lowers nothing.
    abandon(ms(2), secs(1));
    assert_eq!(cheap(secs(1)), 0);
    judge(&set, "1", Health::Served, secs(30));
    assert!(cheap(secs(30)) > 0, "the bound has decayed");
}

/// Of four endpoints, one fails half of its attempts, and another is slow and has calls in flight. If both are a pair,
/// a second pair is drawn, so that the failing one gets few calls.
#[test]
fn second_pair_replaces_a_bad_one() {
    let set = set_of(4);
    for name in ["0", "1", "2", "3"] {
        judge(&set, name, Health::Served, ms(0));
    }
    for _ in 0..5 {
        let ticket = ticket_of(&set, "1", ms(1));
        end_ticket(&set, ticket, &End::judged(Health::Served, ms(100)), ms(1));
    }
    for health in [Health::Failed, Health::Failed, Health::Failed, Health::Served, Health::Failed, Health::Failed] {
        judge(&set, "0", health, ms(1));
    }
    let now = ms(3);
    let _slow = [ticket_of(&set, "1", now), ticket_of(&set, "1", now)];
    let drawn = |seed| pick(&set, &Trail::new(), now, &mut Mixed(seed)).ticket.name().to_string();
    let bad = (0..1200).filter(|seed| ["0", "1"].contains(&&*drawn(*seed))).count();
    // One pair of six has both bad ones, so a single draw would pick 200 of them, and two draw 33.
    assert!((10..60).contains(&bad), "{bad}");
}
