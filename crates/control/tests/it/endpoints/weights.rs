//! Tests of weights, by simulation: the shares of the calls that endpoints of different weights get.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use reattempt_control::Place;
use reattempt_testing::secs;

use super::*;

/// Returns a set with one tier of endpoints "0", "1" and so on, of these weights.
fn weighted(weights: &[u32]) -> Set {
    let set = Set::new();
    let names = (0..).zip(weights).map(|(number, weight)| (Place::new().weight(*weight), number.to_string()));
    set.update(names.collect::<Vec<(_, String)>>(), |_| (), Duration::ZERO);
    set
}

/// Sends this many calls per second for a minute, each of which takes 10 to 30 ms, ten times as long at `slow`.
/// Returns the share of each endpoint in percent.
fn shares(set: &Set, per_second: u64, slow: Option<&str>, seed: u64) -> Vec<f64> {
    let (mut random, mut open) = (Mixed(seed), BinaryHeap::new());
    let mut tickets = Vec::<Option<Ticket>>::new();
    let (mut now, calls) = (0, 60 * per_second);
    for number in 0..calls {
        now += 1 + random.below(2_000_000 / per_second);
        while let Some(Reverse((at, number, took))) = open.pop() {
            if at > now {
                open.push(Reverse((at, number, took)));
                break;
            }
            let ticket = Option::take(&mut tickets[number]).unwrap();
            end_ticket(
                set,
                ticket,
                &End::judged(Health::Served, Duration::from_micros(took)),
                Duration::from_micros(at),
            );
        }
        let ticket = pick(set, &Trail::new(), Duration::from_micros(now), &mut random).ticket;
        let times = if slow == Some(&**ticket.name()) { 10 } else { 1 };
        let took = times * (10_000 + random.below(20_000));
        open.push(Reverse((now + took, usize::try_from(number).unwrap(), took)));
        tickets.push(Some(ticket));
    }
    let picks = set.view(secs(60)).into_iter().map(|view| view.picks as f64);
    picks.map(|picks| 100.0 * picks / calls as f64).collect()
}

#[track_caller]
fn assert_shares(weights: &[u32], expected: &[f64], per_second: u64, most: f64) {
    for seed in 1..=5 {
        let shares = shares(&weighted(weights), per_second, None, seed);
        let is_near = shares.iter().zip(expected).all(|(share, expected)| (share - expected).abs() <= most);
        assert!(is_near, "{shares:?} instead of {expected:?} at {per_second}/s");
    }
}

/// A canary of 5 % beside three others gets 5 % of the calls, plus or minus 3, at any load.
// W-1
#[test]
fn canary_gets_its_share() {
    // A client with few calls has no exact shares.
    for (per_second, most) in [(10, 6.0), (100, 3.0), (1_000, 3.0), (3_000, 3.0)] {
        assert_shares(&[317, 317, 317, 50], &[31.7, 31.7, 31.7, 5.0], per_second, most);
    }
}

/// Servers of different sizes get calls in the ratio of their sizes, most exactly if they are busy.
// W-1
#[test]
fn sizes_get_their_shares() {
    let (sizes, shares) = ([4, 2, 1, 1], [50.0, 25.0, 12.5, 12.5]);
    assert_shares(&sizes, &shares, 2_000, 3.0);
    assert_shares(&sizes, &shares, 100, 9.0);
    // Only the ratio matters.
    assert_shares(&[400, 200, 100, 100], &shares, 2_000, 3.0);
}

/// The price wins over the weight: a large server that is ten times slower gets less than its share, and a slow canary
/// almost nothing.
// W-1
#[test]
fn price_wins_over_weight() {
    for (weights, slow, most) in [([317, 317, 317, 50], "3", 2.0), ([2, 1, 1, 1], "0", 26.0)] {
        for seed in 1..=5 {
            let shares = shares(&weighted(&weights), 500, Some(slow), seed);
            let share = shares[slow.parse::<usize>().unwrap()];
            assert!(share > 0.0 && share < most, "{shares:?}");
        }
    }
}

/// A retry goes to an untried endpoint, whatever its weight, and an ejected one gets no calls.
// W-1, E-1
#[test]
fn retry_avoids_tried_weights() {
    let set = weighted(&[100, 10, 1]);
    for seed in 0..100 {
        let (mut trail, mut random) = (Trail::new(), Mixed(seed));
        for left in [true, true, false] {
            let picked = pick(&set, &trail, ms(1), &mut random);
            assert!(!trail.contains(picked.ticket.id()));
            assert_eq!(picked.elsewhere, left);
            trail.push(picked.ticket.id());
        }
        assert!(trail.contains(pick(&set, &trail, ms(1), &mut random).ticket.id()));
    }
    judge(&set, "0", Health::NotConnected, ms(2));
    let mut random = Mixed(1);
    let picks = (0..1_100).map(|_| pick(&set, &Trail::new(), ms(3), &mut random).ticket.name().to_string());
    let ones = picks.inspect(|name| assert_ne!(name, "0")).filter(|name| name == "1").count();
    assert!((900..1_080).contains(&ones), "{ones} of 1,100, although the ratio is 10 : 1");
}

/// A silent endpoint with almost all of the weight costs few calls.
// W-1, P-7
#[test]
fn silent_weight_gets_few_calls() {
    let set = weighted(&[64, 1, 1]);
    let (mut random, mut held) = (Mixed(1), Vec::new());
    for number in 0..300 {
        let now = ms(10 * number);
        let ticket = pick(&set, &Trail::new(), now, &mut random).ticket;
        match &**ticket.name() {
            "0" => held.push(ticket),
            _ => drop(end_ticket(&set, ticket, &End::judged(Health::Served, ms(1)), now + ms(1))),
        }
    }
    assert!(held.len() <= 2, "{}", held.len());
}

/// An endpoint keeps its state when its weight changes.
// W-2
#[test]
fn new_weight_keeps_the_state() {
    let set = weighted(&[1, 1]);
    judge(&set, "0", Health::Served, ms(1));
    let (ticket, before) = (ticket_of(&set, "0", ms(1)), view(&set, "0", ms(1)));
    set.update([(Place::new().weight(5), "0"), (Place::new(), "1")], |_| (), ms(1));
    let after = view(&set, "0", ms(1));
    assert_eq!((after.id, after.latency, after.in_flight, after.weight), (before.id, before.latency, 1, 5));
    drop(ticket);
}

/// Endpoints are moved without an update of the list, and keep their state. An update meanwhile wins.
// W-2, W-5
#[test]
fn moved_endpoints_keep_their_state() {
    let set = weighted(&[1, 1, 1]);
    judge(&set, "0", Health::Served, ms(1));
    let (ticket, before) = (ticket_of(&set, "0", ms(1)), view(&set, "0", ms(1)));
    let places = || set.view(ms(1)).iter().map(|view| (view.name.to_string(), Place::from(view))).collect::<Vec<_>>();
    let to = |name: &str, tier: usize, weight: u32| (name.to_owned(), Place::from(tier).weight(weight));
    set.place_again(|name, place| if name == "0" { place.tier(1).weight(5) } else { place }, ms(1));
    assert_eq!(places(), [to("1", 0, 1), to("2", 0, 1), to("0", 1, 5)]);
    let after = view(&set, "0", ms(1));
    assert_eq!((after.id, after.latency, after.in_flight), (before.id, before.latency, 1));
    drop(ticket);
    let update = |name: &str, place: Place| {
        if name == "1" {
            set.update([(Place::new().weight(9), "1"), (Place::new(), "2")], |_| (), ms(1));
        }
        place.weight(7)
    };
    set.place_again(update, ms(1));
    assert_eq!(places(), [to("1", 0, 9), to("2", 0, 7)]);
}
