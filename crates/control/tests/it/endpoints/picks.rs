//! Tests of the pick: untried endpoints come first, and calls in flight are counted.

use std::panic::{AssertUnwindSafe, catch_unwind};

use reattempt_core::MOST_MOVES;
use reattempt_core::guard::BodyEnd;
use reattempt_testing::secs;

use super::*;

/// Each attempt of a call goes to an untried endpoint as long as one is in service. `elsewhere` is `true` if the next
/// attempt can as well. Envoy's retry may return to the server that failed (Envoy #2259).
// E-1
#[test]
fn untried_endpoint_comes_first() {
    let mut random = Mixed(1);
    for length in [1, 2, 3, 4, 5, 7, 8, 9, 20, 100, 1000] {
        let set = set_of(length);
        // Every third endpoint is ejected, up to half of them.
        let mut left = length.div_ceil(3).min(length / 2).min(9);
        let mut held = Vec::new();
        while left > 0 {
            let ticket = pick(&set, &Trail::new(), ms(1), &mut random).ticket;
            let bad = ticket.name().parse::<usize>().unwrap().is_multiple_of(3);
            if bad {
                left -= end_ticket(&set, ticket, &End::judged(Health::Failed, ms(1)), ms(1)).len();
            } else {
                // A call in flight raises the price of this other endpoint.
                held.push(ticket);
            }
        }
        drop(held);
        let in_service = length - out(&set, secs(1)).len();
        for _ in 0..200 {
            let (mut trail, mut tried) = (Trail::new(), Vec::new());
            for attempt in 1..=Trail::LENGTH + 1 {
                let picked = pick(&set, &trail, secs(1), &mut random);
                let id = picked.ticket.id();
                assert_eq!(tried.contains(&id), attempt > in_service, "{attempt} of {length}");
                assert_eq!(picked.elsewhere, attempt < in_service, "{attempt} of {length}");
                tried.push(id);
                trail.push(id);
                let health = [Health::Served, Health::Overloaded][attempt % 2];
                end_ticket(&set, picked.ticket, &End::judged(health, ms(3)), secs(1));
            }
        }
        assert_eq!(length - out(&set, secs(1)).len(), in_service);
    }
}

/// If a call has tried all endpoints, the set picks the cheapest one.
// E-1
#[test]
fn cheapest_follows_once_all_are_tried() {
    let set = set_of(5);
    let mut trail = Trail::new();
    for name in 0..5_u64 {
        let ticket = ticket_of(&set, &name.to_string(), Duration::ZERO);
        trail.push(ticket.id());
        let latency = if name == 3 { ms(4) } else { ms(40 + name) };
        end_ticket(&set, ticket, &End::judged(Health::Served, latency), Duration::ZERO);
    }
    for seed in 0..100 {
        let picked = pick(&set, &trail, ms(1), &mut Mixed(seed));
        assert_eq!((&**picked.ticket.name(), picked.elsewhere), ("3", false));
    }
}

/// A trail remembers the endpoints of twelve attempts and three moves.
// C-3
#[test]
fn trail_forgets_the_sixteenth() {
    assert_eq!(Trail::LENGTH, 12 + MOST_MOVES as usize);
    let set = set_of(17);
    let ids: Vec<_> = set.view(Duration::ZERO).iter().map(|view| view.id).collect();
    let mut trail = Trail::new();
    ids.iter().for_each(|id| trail.push(*id));
    assert_eq!(trail.ids().iter().rev().copied().collect::<Vec<_>>(), ids[2..]);
    assert!(!trail.contains(ids[1]) && trail.contains(ids[2]));
}

/// An empty set has no endpoint to pick.
#[test]
fn empty_set_picks_nothing() {
    let set = set_of(0);
    assert!(set.pick(&Trail::new(), secs(1), &mut Mixed(1)).is_none());
    set.update([(0, "a")], |_| (), secs(1));
    assert!(!pick(&set, &Trail::new(), secs(1), &mut Mixed(1)).elsewhere);
    set.update([(0, ""); 0], |_| (), secs(1));
    assert!(set.pick(&Trail::new(), secs(1), &mut Mixed(1)).is_none());
}

/// The count of calls in flight is exact after every kind of end, after a drop without an end, and after a panic.
// E-9
#[test]
fn calls_in_flight_are_exact() {
    let set = set_of(1);
    let in_flight = || view(&set, "0", secs(1)).in_flight;
    let take = || ticket_of(&set, "0", secs(1));
    let tickets: Vec<_> = (0..100).map(|_| take()).collect();
    assert_eq!(in_flight(), 100);
    drop(tickets);
    assert_eq!(in_flight(), 0);
    for over in [End::Unsent, End::Abandoned { after: ms(1) }, End::Over(BodyEnd::Dropped)] {
        assert!(set.end_ticket(take(), &over, secs(1), &mut Always(0)).held.is_none());
        assert_eq!(in_flight(), 0);
    }
    // A response body is dropped half read.
    for health in [Health::Served, Health::Failed, Health::Ignored] {
        let held = set.end_ticket(take(), &End::judged(health, ms(1)), secs(1), &mut Always(0)).held;
        assert_eq!(in_flight(), 1);
        assert!(set.end_ticket(held.unwrap(), &End::Over(BodyEnd::Broken), secs(1), &mut Always(0)).held.is_none());
        assert_eq!(in_flight(), 0);
    }
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _ticket = take();
        panic!("a service panics");
    }));
    assert!(unwound.is_err());
    assert_eq!(in_flight(), 0);
}

/// The count of calls in flight stays exact through ejections, returns and updates, which replace the lists.
// E-9, E-10
#[test]
fn calls_in_flight_survive_new_lists() {
    let set = set_of(3);
    let held: Vec<_> = (0..30).map(|_| pick(&set, &Trail::new(), ms(1), &mut Mixed(3))).collect();
    let count = |now| set.view(now).iter().map(|view| view.in_flight).sum::<usize>();
    assert_eq!(count(ms(1)), 30);
    kill(&set, "1", ms(1));
    assert_eq!((out(&set, ms(2)).len(), count(ms(2))), (1, 30));
    drop(pick(&set, &Trail::new(), secs(7), &mut Mixed(1)));
    assert_eq!((out(&set, secs(7)).len(), count(secs(7))), (0, 30));
    set.update([(0, "0"), (0, "1"), (0, "2"), (0, "3")], |_| (), secs(8));
    assert_eq!(count(secs(8)), 30);
    drop(held);
    assert_eq!(count(secs(8)), 0);
}

/// Of two endpoints with equal latencies, the set picks the one with fewer calls in flight. The load of tonic's
/// `Connection` is always 0.
#[test]
fn fewer_calls_in_flight_are_cheaper() {
    let set = set_of(2);
    for name in ["0", "1"] {
        judge(&set, name, Health::Served, Duration::ZERO);
    }
    let mut held = Vec::new();
    for _ in 0..10 {
        let pair = [1, 2].map(|seed| pick(&set, &Trail::new(), ms(1), &mut Mixed(seed)).ticket);
        assert_ne!(pair[0].name(), pair[1].name());
        held.push(pair);
    }
}

/// Among endpoints with known latencies, one with an unknown latency gets one call, and no other until that call has
/// ended.
#[test]
fn unknown_latency_gets_one_call_at_a_time() {
    let set = set_of(2);
    judge(&set, "0", Health::Served, Duration::ZERO);
    let mut random = Mixed(1);
    let held: Vec<_> = (0..100).map(|_| pick(&set, &Trail::new(), ms(1), &mut random).ticket).collect();
    let unknown = held.iter().filter(|ticket| &**ticket.name() == "1").count();
    assert_eq!(unknown, 1);
}

/// The set picks from the first tier with an untried endpoint in service. The second tier is used if the whole first
/// tier is ejected.
#[test]
fn later_tier_follows_the_first() {
    let set = Set::new();
    set.update([(0, "a"), (0, "b"), (7, "x"), (7, "y")], |_| (), Duration::ZERO);
    let mut random = Mixed(1);
    let mut names = |trail: &Trail| -> Vec<_> {
        let picks = (0..50).map(|_| pick(&set, trail, ms(1), &mut random).ticket.name().to_string());
        picks.collect::<std::collections::BTreeSet<_>>().into_iter().collect()
    };
    assert_eq!(names(&Trail::new()), ["a", "b"]);
    let mut trail = Trail::new();
    trail.push(view(&set, "a", ms(1)).id);
    assert_eq!(names(&trail), ["b"]);
    trail.push(view(&set, "b", ms(1)).id);
    assert_eq!(names(&trail), ["x", "y"]);
    for name in ["x", "y"] {
        trail.push(view(&set, name, ms(1)).id);
    }
    // All have been tried, so the set picks the cheapest endpoint of the first tier.
    assert_eq!(names(&trail).len(), 1);
    kill_all(&set, &["a", "b"], ms(1));
    assert_eq!(out(&set, ms(1)), ["a", "b"]);
    assert_eq!(names(&Trail::new()), ["x", "y"]);
    // At least half of the last tier stays in service.
    kill_all(&set, &["x", "y"], ms(1));
    assert_eq!(out(&set, ms(1)), ["a", "b"]);
}
