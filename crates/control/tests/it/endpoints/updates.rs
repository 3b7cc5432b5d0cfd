//! Tests of updates, subsets, warnings and `Debug`.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::sync::Arc;

use reattempt_testing::secs;

use super::*;

/// An endpoint that is part of an update keeps its service, latency, failures, ejection and calls in flight.
// E-10
#[test]
fn staying_endpoint_keeps_its_state() {
    let set = set_of(4);
    judge(&set, "2", Health::Served, ms(1));
    let held = ticket_of(&set, "2", ms(1));
    kill(&set, "3", ms(1));
    let before = ["2", "3"].map(|name| view(&set, name, secs(1)));
    let mut made = Vec::new();
    let events =
        set.update([(0, "9"), (0, "3"), (0, "2"), (0, "8"), (0, "3")], |name| made.push(name.to_owned()), secs(1));
    assert_eq!((events, made), (None, vec!["9".to_owned(), "8".to_owned()]));
    assert_eq!(["2", "3"].map(|name| view(&set, name, secs(1))), before);
    assert_eq!(set.view(secs(1)).len(), 4);
    // The same holds if the endpoint moves to another tier.
    set.update([(0, "9"), (3, "2")], |_| (), secs(1));
    assert_eq!(view(&set, "2", secs(1)).in_flight, 1);
    assert_eq!((view(&set, "2", secs(1)).tier, view(&set, "2", secs(1)).id), (3, before[0].id));
    drop(held);
}

/// Calls to removed endpoints change nothing when they end, and removed endpoints are no longer picked.
// E-10
#[test]
fn ends_of_removed_ones_change_nothing() {
    let set = set_of(3);
    let tickets: Vec<_> = (0..20).map(|_| ticket_of(&set, "1", ms(1))).collect();
    set.update([(0, "0"), (0, "2")], |_| (), ms(2));
    let before = set.view(ms(3));
    for ticket in tickets {
        assert_eq!(end_ticket(&set, ticket, &End::judged(Health::Failed, ms(1)), ms(3)), []);
    }
    assert_eq!(set.view(ms(3)), before);
    for seed in 0..100 {
        assert_ne!(&**pick(&set, &Trail::new(), ms(3), &mut Mixed(seed)).ticket.name(), "1");
    }
    // A removed endpoint that comes back is a new endpoint.
    set.update((0..3).map(|name| (0, name.to_string())), |_| (), ms(4));
    assert_eq!(view(&set, "1", ms(4)).failing, 0.0);
}

/// If an update removes a healthy endpoint and thereby makes the ejected ones the majority, it also returns them to
/// service.
// E-10, E-20
#[test]
fn update_applies_the_cap_anew() {
    let set = set_of(4);
    kill_all(&set, &["0", "1"], ms(1));
    set.update([(0, "0"), (0, "1"), (0, "2")], |_| (), ms(2));
    assert_eq!(out(&set, ms(2)), Vec::<String>::new());
    set.update([(0, "0"), (0, "1"), (0, "2"), (0, "4")], |_| (), ms(3));
    assert_eq!(out(&set, ms(3)), ["0", "1"]);
}

/// After a removal between two attempts, each pick sends to the endpoint that it names, and an endpoint that has failed
/// gets calls again. tower's balancer panics or sends elsewhere after `Remove`, and forgets a failed endpoint
/// (tower#856).
// E-10
#[test]
fn removal_misroutes_no_pick() {
    let set = EndpointSet::new();
    let update = |names: &[&str], now| drop(set.update(names.iter().map(|name| (0, *name)), str::to_owned, now));
    update(&["a", "b", "c", "d"], ms(0));
    let (mut random, mut open) = (Mixed(1), Vec::new());
    for round in 1..=100 {
        let now = secs(round);
        update(if round % 2 == 0 { &["d", "b", "a"] } else { &["b", "c", "d"] }, now);
        for ticket in open.drain(..) {
            let health = if random.below(2) == 0 { Health::Unavailable } else { Health::Served };
            set.end_ticket(ticket, &End::judged(health, secs(1)), now, &mut Always(0));
        }
        open.extend((0..20).map(|_| set.pick(&Trail::new(), now, &mut random).unwrap().ticket));
        assert!(open.iter().all(|ticket| &**ticket.name() == ticket.service()), "{open:?}");
        assert!(!open.iter().any(|ticket| ticket.service() == if round % 2 == 0 { "c" } else { "a" }), "{open:?}");
    }
    drop(open);
    let end = secs(200);
    // Each attempt in flight raises the price of its endpoint.
    let held: Vec<_> = (0..1000).map(|_| set.pick(&Trail::new(), end, &mut random).unwrap().ticket).collect();
    assert_eq!(held.iter().map(EndpointTicket::name).collect::<BTreeSet<_>>().len(), 3);
}

/// Services of removed endpoints are dropped once, after their last call.
#[test]
fn removed_service_lives_while_it_is_used() {
    let (set, service) = (EndpointSet::new(), Arc::new(()));
    set.update([(0, "a")], |_| Arc::clone(&service), ms(0));
    let ticket = set.pick(&Trail::new(), ms(1), &mut Mixed(1)).unwrap().ticket;
    set.update([(0, "b")], |_| Arc::new(()), ms(1));
    assert_eq!(Arc::strong_count(&service), 2);
    assert!(Arc::ptr_eq(ticket.service(), &service));
    drop(ticket);
    assert_eq!(Arc::strong_count(&service), 1);
}

/// A panic in the function that makes services changes nothing.
#[test]
fn panicking_service_changes_nothing() {
    let set = set_of(2);
    let update = || set.update([(0, "x")], |_| panic!("no client"), ms(1));
    assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(update)).is_err());
    assert_eq!(set.view(ms(1)).len(), 2);
    set.update([(0, "y")], |_| (), ms(2));
    assert_eq!(view(&set, "y", ms(2)).in_flight, 0);
}

/// The function that makes services may update the set. Its update comes first.
// E-10
#[test]
fn update_inside_make_comes_first() {
    let (done, is_done) = std::sync::mpsc::channel();
    // On a thread of its own, because a deadlock must fail the test.
    std::thread::spawn(move || {
        let set = set_of(0);
        let mut made = Vec::new();
        let make = |name: &str| {
            if name == "a" {
                set.update([(0, "b"), (0, "c")], |_| (), ms(1));
            }
            made.push(name.to_owned());
        };
        set.update([(0, "a"), (0, "b"), (0, "c")], make, ms(1));
        let names: Vec<_> = set.view(ms(1)).iter().map(|view| view.name.to_string()).collect();
        done.send((names, made))
    });
    let (names, made) = is_done.recv_timeout(std::time::Duration::from_secs(60)).unwrap();
    assert_eq!((names, made), (["a", "b", "c"].map(String::from).into(), ["a", "b", "c"].map(String::from).into()));
}

/// An endpoint that another update removes while services are made is made again.
// E-10
#[test]
fn endpoint_removed_meanwhile_is_made() {
    let set = set_of(0);
    set.update([(0, "a")], |_| (), ms(0));
    let mut made = Vec::new();
    let make = |name: &str| {
        set.update([(0, "x")], |_| (), ms(1));
        made.push(name.to_owned());
    };
    set.update([(0, "a"), (0, "b")], make, ms(1));
    assert_eq!(made, ["b", "a"]);
    assert_eq!(set.view(ms(1)).len(), 2);
}

/// A subset has the given number of endpoints of each tier, different ones for each seed. An update changes few
/// endpoints other than the removed ones.
#[test]
fn subset_changes_little() {
    let chosen = |names: std::ops::Range<u32>, seed| -> BTreeSet<_> {
        let set = Set::new().subset(NonZeroUsize::new(10).unwrap(), seed);
        let one_more = [(1, "only".to_owned())];
        set.update(names.map(|name| (0, name.to_string())).chain(one_more), |_| (), ms(0));
        assert_eq!(set.view(ms(0)).iter().filter(|view| view.tier == 1).count(), 1);
        set.view(ms(0)).into_iter().filter(|view| view.tier == 0).map(|view| view.name).collect()
    };
    let of_all = chosen(0..1000, 1);
    assert_eq!(of_all.len(), 10);
    assert_eq!(chosen(0..1000, 1), of_all);
    // If the update adds a tenth of all endpoints, about one in ten chosen endpoints is new.
    let moved = chosen(0..1100, 1).difference(&of_all).count();
    assert!(moved <= 4, "{moved}");
    let seeds: BTreeSet<_> = (0..200).flat_map(|seed| chosen(0..100, seed)).collect();
    assert_eq!(seeds.len(), 100, "no endpoint is left out by all clients");
}

/// More than 100 endpoints without a subset cause a warning.
#[test]
fn many_endpoints_are_warned_of() {
    assert_eq!(set_of(100).validate(), []);
    let warnings = set_of(101).validate();
    assert_eq!(warnings[0].to_string(), "`endpoints` is 101 (recommended: at most 100, or a subset)");
    let set = Set::new().subset(NonZeroUsize::new(200).unwrap(), 1);
    set.update((0..150).map(|name| (0, name.to_string())), |_| (), ms(0));
    assert_eq!(set.validate(), []);
}

/// Returns the names that each of 50 clients uses, 20 each.
fn sections(names: &[String]) -> Vec<BTreeSet<Arc<str>>> {
    let of_client = |index| {
        let set = Set::new().subset_of(NonZeroUsize::new(20).unwrap(), index);
        set.update(names.iter().map(|name| (0, name.as_str())), |_| (), ms(0));
        set.view(ms(0)).into_iter().map(|view| view.name).collect()
    };
    (0..50).map(of_client).collect()
}

/// 50 clients of 20 endpoints each share 1,000 endpoints: each has exactly one client, whatever the order of the list.
/// If a tenth of the endpoints is replaced, clients replace about a quarter of theirs.
// S-2
#[test]
fn sections_are_even_and_stable() {
    let mut names: Vec<_> = (0..1000).map(|number| format!("10.0.{}.{}:8080", number / 250, number % 250)).collect();
    let before = sections(&names);
    assert!(before.iter().all(|section| section.len() == 20));
    assert_eq!(before.iter().flatten().collect::<BTreeSet<_>>().len(), 1000);
    names.reverse();
    assert_eq!(sections(&names), before);
    let mut random = Mixed(1);
    for _ in 0..100 {
        let old = usize::try_from(random.below(1000)).unwrap();
        names[old] = format!("10.1.0.{}:8080", random.next_u64());
    }
    let after = sections(&names);
    assert_eq!(after.iter().flatten().collect::<BTreeSet<_>>().len(), 1000);
    let new: usize = after.iter().zip(&before).map(|(after, before)| after.difference(before).count()).sum();
    assert!((90..350).contains(&new), "{new} of 1,000 connections are new");
    // One more endpoint moves each section by at most one.
    names.push("10.2.0.1:8080".to_owned());
    let one_more = sections(&names);
    assert!(one_more.iter().zip(&after).all(|(one_more, after)| one_more.difference(after).count() <= 1));
}

/// The indices of clients go on around the ring, and each client has different endpoints.
// S-2
#[test]
fn sections_go_around_the_ring() {
    let names = (0..7).map(|number| number.to_string());
    let mut clients = [0; 7];
    for index in 0..10 {
        let set = Set::new().subset_of(NonZeroUsize::new(3).unwrap(), index);
        set.update(names.clone().map(|name| (0, name)), |_| (), ms(0));
        let views = set.view(ms(0));
        assert_eq!(views.len(), 3);
        views.iter().for_each(|view| clients[view.name.parse::<usize>().unwrap()] += 1);
    }
    assert!(clients.iter().all(|clients| (4..=5).contains(clients)), "{clients:?}");
    for (most, index) in [(7, 3), (100, u64::MAX), (3, u64::MAX)] {
        let set = Set::new().subset_of(NonZeroUsize::new(most).unwrap(), index);
        set.update(names.clone().map(|name| (0, name)), |_| (), ms(0));
        assert_eq!(set.view(ms(0)).len(), most.min(7));
        assert_eq!(set.validate(), []);
    }
}

/// A random subset warns that some endpoints may have no client.
// S-1
#[test]
fn uneven_subset_is_warned_of() {
    let set = Set::new().subset(NonZeroUsize::new(20).unwrap(), 1);
    set.update((0..1000).map(|name| (0, name.to_string())), |_| (), ms(0));
    let expected = "`subset` is 20 of 1000 endpoints (recommended: clients × subset ≥ 5 × endpoints, else give an index: `subset_of`)";
    assert_eq!(set.validate()[0].to_string(), expected);
}

/// `Debug` lists name, state, calls in flight, latency and failure rate.
#[test]
fn debug_lists_each_endpoint() {
    let set = set_of(2);
    judge(&set, "0", Health::Served, ms(1));
    let ticket = ticket_of(&set, "0", ms(1));
    let shown = format!("{set:?}");
    for part in ["name: \"0\"", "in_flight: 1", "latency: Some(999.936µs)", "failing: 0.0", "out: None"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(format!("{ticket:?}"), "EndpointTicket(\"0\")");
}
