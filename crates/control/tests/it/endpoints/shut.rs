//! Endpoints that can serve nothing: they accept no connection, or have asked for a wait. And events: failures with one
//! cause count once.

use reattempt_control::EjectReason::{self, Asked, InARow, NoConnection};
use reattempt_control::{CircuitBreaker, RetryBudget};
use reattempt_core::guard::{Admit, Arrival, BodyEnd, Guard};
use reattempt_core::{Budget, Evidence, Failure, FailureKind, ServerHint};
use reattempt_testing::secs;

use super::ejections::ejected;
use super::*;

/// Ends an attempt at this endpoint with a 503 that has this hint.
fn busy(set: &Set, name: &str, hint: ServerHint, now: Duration) -> Vec<EndpointEvent> {
    let end = End::Judged { health: Health::Unavailable, hint, quota: None, after: ms(1) };
    end_ticket(set, ticket_of(set, name, now), &end, now)
}

/// Returns the endpoints that a pick at this time draws from.
fn in_service(set: &Set, now: Duration) -> Vec<String> {
    drop(pick(set, &Trail::new(), now, &mut Mixed(1)));
    let views = set.view(now).into_iter();
    views.filter(|view| view.out.is_none()).map(|view| view.name.to_string()).collect()
}

/// Of a hundred calls that fail with their connection, only the first is a failure, which counts twice. A call that was
/// sent after it was seen begins the next event, and the third event ejects.
// C-8, E-21, trap 60
#[test]
fn lost_connection_counts_as_two_failures() {
    let set = set_of(3);
    judge(&set, "1", Health::Served, ms(1));
    for event in 1..=3_u32 {
        let sent = secs(1) * event;
        let tickets: Vec<_> = (0..100).map(|_| ticket_of(&set, "1", sent)).collect();
        let mut events = Vec::new();
        for (call, ticket) in (0..).zip(tickets) {
            // The last calls see the loss much later.
            let after = ms(5) + ms(7) * call;
            events.extend(end_ticket(&set, ticket, &End::judged(Health::Lost, after), sent + after));
        }
        match event {
            3 => assert_eq!(ejected(&events), [("1", InARow, secs(5))]),
            _ => assert_eq!(events, [], "event {event}"),
        }
    }
    // A success between them ends the row.
    let set = set_of(3);
    for call in 0..20 {
        assert_eq!(judge(&set, "1", Health::Lost, secs(call)), []);
        judge(&set, "1", Health::Served, secs(call) + ms(5));
    }
}

/// An attempt that was sent at the moment the event was seen is a member; one sent a nanosecond later is not.
// C-8, E-21
#[test]
fn event_ends_when_it_is_seen() {
    for (late, expected) in [(0, 0.125), (1, 0.234_375)] {
        let set = set_of(2);
        let seen = ms(5);
        let [first, member] = [ms(1), seen].map(|at| ticket_of(&set, "0", at));
        end_ticket(&set, first, &End::judged(Health::Lost, ms(4)), seen);
        let sent = seen + Duration::from_nanos(late);
        end_ticket(&set, member, &End::judged(Health::Lost, ms(9)), sent + ms(9));
        let failing = view(&set, "0", seen).failing;
        assert!((failing - expected).abs() < 0.001, "{failing} after {late} ns");
    }
}

/// The budget, the breaker and the endpoints agree about the members of an event, whatever their units are.
// C-4, C-6, C-8
#[test]
fn consumers_agree_on_members() {
    let seen = ms(1_000);
    for (sent, is_member) in [(ms(1), true), (ms(999), true), (seen, true), (ms(1_001), false), (ms(2_000), false)] {
        let lost = |sent| Evidence::from(Failure::new(FailureKind::Network)).sent_at(sent);
        assert_eq!(lost(sent).is_of_event(seen), is_member, "the reports, {sent:?}");

        let (set, budget) = (set_of(2), RetryBudget::cautious());
        let breaker = CircuitBreaker::rate().min_failing_time(Duration::ZERO);
        let later = ms(3_000);
        for (sent, now) in [(ms(0), seen), (sent, later)] {
            let end = End::judged(Health::Lost, now - sent);
            end_ticket(&set, ticket_of(&set, "0", sent), &end, now);
            let Admit::Admitted(ticket) = breaker.admit(&Arrival::new("a", sent)) else { panic!("it is closed") };
            breaker.end_ticket(ticket, &end, now);
            budget.on_failure("a", &lost(sent), now);
        }
        let events = if is_member { 1 } else { 2 };
        assert_eq!(breaker.counts_at("a", later).total_failures, events, "the breaker, {sent:?}");
        assert!(format!("{budget:?}").contains(&format!("with doubt {events}")), "{budget:?}, {sent:?}");
        // Two events are four failures in a row.
        assert_eq!(view(&set, "0", later).failing > 0.2, !is_member, "the endpoints, {sent:?}");
    }
}

/// In the failure rate of ten seconds, an event is one call and one failure. Its members are not calls.
// C-8, E-21
#[test]
fn event_is_one_call_of_the_rate() {
    let set = set_of(2);
    let lost = |members: usize, now: Duration| {
        let tickets: Vec<_> = (0..members).map(|_| ticket_of(&set, "0", now)).collect();
        let ends = tickets
            .into_iter()
            .flat_map(|ticket| end_ticket(&set, ticket, &End::judged(Health::Lost, ms(1)), now + ms(1)));
        ends.collect::<Vec<_>>()
    };
    for call in 0..9 {
        assert_eq!(lost(30, ms(10) * call), []);
        judge(&set, "0", Health::Served, ms(10) * call + ms(5));
    }
    assert_eq!(lost(30, ms(100)), [], "19 calls so far");
    judge(&set, "0", Health::Served, ms(105));
    let events = lost(30, ms(110));
    assert_eq!(events.len(), 1, "half of 21 calls: {events:?}");
}

/// A body that breaks after a good head is a failure of its endpoint, and does not change the latency. After a head
/// that was a failure it is counted once, and so are bodies that break together.
// C-8, trap 60
#[test]
fn broken_body_is_a_failure() {
    let head = |set: &Set, health, now| {
        let ticket = ticket_of(set, "0", now);
        set.end_ticket(ticket, &End::judged(health, ms(1)), now, &mut Always(0)).held.unwrap()
    };
    let body = |set: &Set, health, over, now| {
        let held = head(set, health, now);
        end_ticket(set, held, &End::Over(over), now + ms(100))
    };
    let set = set_of(3);
    assert_eq!(body(&set, Health::Served, BodyEnd::Complete, ms(1)), []);
    assert_eq!(body(&set, Health::Served, BodyEnd::Dropped, ms(1)), []);
    assert_eq!(view(&set, "0", ms(101)).failing, 0.0);
    let latency = view(&set, "0", ms(1)).latency;
    assert_eq!(body(&set, Health::Served, BodyEnd::Broken, ms(1)), []);
    assert_eq!(view(&set, "0", ms(101)).failing, 0.125);
    assert_eq!(view(&set, "0", ms(1)).latency, latency);

    let mut calls = 1;
    let events = loop {
        let events = body(&set, Health::Served, BodyEnd::Broken, ms(200) * calls);
        calls += 1;
        if !events.is_empty() {
            break events;
        }
    };
    assert_eq!(ejected(&events), [("0", EjectReason::FailureRate, secs(5))]);
    assert_eq!(calls, 20);

    let set = set_of(3);
    body(&set, Health::Failed, BodyEnd::Broken, ms(1));
    assert_eq!(view(&set, "0", ms(1)).failing, 0.125);

    // Fifty bodies on one connection, which is lost.
    let set = set_of(3);
    let held: Vec<_> = (0..50).map(|_| head(&set, Health::Served, ms(1))).collect();
    for held in held {
        assert_eq!(end_ticket(&set, held, &End::Over(BodyEnd::Broken), ms(2)), []);
    }
    assert_eq!(view(&set, "0", ms(2)).failing, 0.125);
}

/// A fault of this machine or the caller shows nothing about the endpoint.
// C-8, trap 62
#[test]
fn local_faults_change_nothing() {
    let set = set_of(2);
    judge(&set, "0", Health::Served, ms(1));
    let before = view(&set, "0", ms(2));
    for _ in 0..100 {
        for health in [Health::Local, Health::Ignored] {
            let ticket = ticket_of(&set, "0", ms(2));
            assert_eq!(end_ticket(&set, ticket, &End::judged(health, secs(9)), ms(2)), []);
        }
    }
    let after = view(&set, "0", ms(2));
    assert_eq!((after.latency, after.failing, after.out), (before.latency, 0.0, None));
}

/// The first refused connection ejects, for 1 s. The time doubles up to 10 s, with a random fifth at most, and each
/// half minute in service undoes one doubling. Ejections for failures have a series of their own.
// C-9, E-22
#[test]
fn refused_connection_ejects_at_once() {
    let set = set_of(3);
    let (mut now, mut times) = (secs(1), Vec::new());
    for _ in 0..6 {
        let events = judge(&set, "0", Health::NotConnected, now);
        let [(_, NoConnection, lasts)] = ejected(&events)[..] else { panic!("{events:?}") };
        times.push(lasts.as_secs());
        assert_eq!(view(&set, "0", now + ms(2)).reason, Some(NoConnection));
        now += lasts + ms(2);
    }
    assert_eq!(times, [1, 2, 4, 8, 10, 10]);
    judge(&set, "0", Health::Served, now);
    let events = kill(&set, "0", now + secs(1));
    assert_eq!(ejected(&events), [("0", InARow, secs(5))]);
    // In service since then, 125 s undo four of the six ejections.
    let events = judge(&set, "0", Health::NotConnected, now + secs(125));
    assert_eq!(ejected(&events), [("0", NoConnection, secs(4))]);

    let ticket = ticket_of(&set, "1", now);
    let refused = End::judged(Health::NotConnected, ms(1));
    let events = listed(set.end_ticket(ticket, &refused, now, &mut Always(u64::MAX)).events);
    assert_eq!(ejected(&events), [("1", NoConnection, ms(1200))]);
}

/// All but one of the endpoints may be out if they accept no connection. Failing ones are out only if they are at most
/// half of the others.
// C-9, E-22, E-4
#[test]
fn unreachable_majority_is_out() {
    let set = set_of(20);
    for name in 0..14 {
        judge(&set, &name.to_string(), Health::NotConnected, ms(1));
    }
    assert_eq!(out(&set, ms(2)).len(), 14);
    kill_all(&set, &["14", "15", "16"], ms(2));
    assert_eq!(out(&set, ms(2)).len(), 17, "three of the six that accept connections");
    let events = kill(&set, "17", ms(2));
    assert_eq!(events[0], EndpointEvent::MajorityFailing { tier: 0 });
    assert_eq!(out(&set, ms(2)).len(), 14, "four of six would be too many");
    let left: Vec<_> = (14..19).map(|name| ticket_of(&set, &name.to_string(), ms(2))).collect();
    for ticket in left {
        end_ticket(&set, ticket, &End::judged(Health::NotConnected, ms(1)), ms(3));
    }
    assert_eq!(in_service(&set, ms(4)), ["19"]);
}

/// If no endpoint accepts a connection, all are in service. The first one that serves a call takes over, and the others
/// follow as they do.
// C-9, E-22, E-5
#[test]
fn all_unreachable_are_all_in() {
    let set = set_of(3);
    for name in ["0", "1", "2"] {
        judge(&set, name, Health::NotConnected, ms(1));
    }
    assert_eq!(in_service(&set, ms(2)), ["0", "1", "2"]);
    // The next refusals change nothing.
    for _ in 0..20 {
        assert_eq!(judge(&set, "0", Health::NotConnected, ms(3)), []);
    }
    judge(&set, "1", Health::Served, ms(500));
    // The ejections of "0" and "2" end, and "2" is the first to refuse again.
    let events = listed(pick(&set, &Trail::new(), ms(1002), &mut Mixed(1)).events);
    assert_eq!(events, [EndpointEvent::MajorityWell { tier: 0 }]);
    let events = judge(&set, "2", Health::NotConnected, ms(1010));
    assert_eq!(ejected(&events), [("2", NoConnection, secs(2))]);
    judge(&set, "0", Health::NotConnected, ms(1010));
    assert_eq!(in_service(&set, ms(1020)), ["1"]);
}

/// The first endpoint that returns from an outage of all is not alone in service until it has served a call. The others
/// may be back too, and one alone would get the calls of all.
// C-9, E-22
#[test]
fn returned_endpoint_is_not_left_alone() {
    let set = set_of(3);
    let refuse = |name, now| drop(judge(&set, name, Health::NotConnected, now));
    refuse("0", ms(1));
    refuse("1", ms(1));
    refuse("2", ms(900));
    assert_eq!(in_service(&set, ms(901)), ["0", "1", "2"], "all are out, so all are in");
    assert_eq!(in_service(&set, ms(1100)), ["0", "1", "2"], "two have returned, and none has served");
    judge(&set, "0", Health::Served, ms(1200));
    refuse("1", ms(1200));
    assert_eq!(in_service(&set, ms(1201)), ["0"]);
}

/// A success of a call that was in flight does not bring an unreachable endpoint back: it used an older connection.
// C-9, E-22
#[test]
fn late_success_keeps_unreachable_out() {
    let set = set_of(3);
    let late = ticket_of(&set, "0", ms(1));
    judge(&set, "0", Health::NotConnected, ms(2));
    end_ticket(&set, late, &End::judged(Health::Served, ms(9)), ms(10));
    judge(&set, "1", Health::NotConnected, ms(20));
    assert_eq!(in_service(&set, ms(30)), ["2"]);
    // An attempt that was sent before the ejection does not prolong it after its end.
    let set = set_of(3);
    let late = ticket_of(&set, "0", ms(1));
    judge(&set, "0", Health::NotConnected, ms(2));
    let end = End::judged(Health::NotConnected, secs(3));
    assert_eq!(ejected(&end_ticket(&set, late, &end, secs(3) + ms(1))), []);
}

/// An endpoint that asks for a wait is not picked before it has passed, up to a minute. A wait of zero, a pushback, and
/// the wait of an account's limit bind no endpoint.
// C-13, E-23
#[test]
fn asked_wait_binds_its_endpoint() {
    let wait = secs(7);
    for (hint, lasts) in [
        (ServerHint::After(wait), Some(wait)),
        (ServerHint::AtLeast(wait), Some(wait)),
        (ServerHint::After(secs(120)), Some(secs(60))),
        (ServerHint::AtLeast(Duration::MAX), Some(secs(60))),
        (ServerHint::After(Duration::from_nanos(1)), Some(ms(1))),
        (ServerHint::After(Duration::ZERO), None),
        (ServerHint::Exactly(wait), None),
        (ServerHint::Stop, None),
        (ServerHint::None, None),
    ] {
        let set = set_of(2);
        let events = busy(&set, "0", hint, secs(1));
        let expected: Vec<_> = lasts.map(|lasts| ("0", Asked, lasts)).into_iter().collect();
        assert_eq!(ejected(&events), expected, "{hint:?}");
        let Some(lasts) = lasts else { continue };
        assert_eq!(in_service(&set, secs(1) + lasts - Duration::from_nanos(1)), ["1"], "{hint:?}");
        let back = in_service(&set, secs(1) + lasts);
        assert_eq!((back.len(), view(&set, "0", secs(1) + lasts).reason), (2, None), "{hint:?}");
    }
    let set = set_of(2);
    let end = End::Judged { health: Health::Overloaded, hint: ServerHint::After(wait), quota: None, after: ms(1) };
    assert_eq!(end_ticket(&set, ticket_of(&set, "0", secs(1)), &end, secs(1)), []);
}

/// A later response moves the end of a wait, but never back. The wait does not depend on how many endpoints are out,
/// unless all are. It is no reason to eject the endpoint after its return.
// C-13, E-23
#[test]
fn asked_wait_is_prolonged() {
    let set = set_of(3);
    let late: Vec<_> = (0..2).map(|_| ticket_of(&set, "0", ms(1))).collect();
    busy(&set, "0", ServerHint::After(secs(5)), ms(1));
    for (ticket, wait) in late.into_iter().zip([secs(9), secs(2)]) {
        let hint = ServerHint::After(wait);
        let end = End::Judged { health: Health::Unavailable, hint, quota: None, after: ms(1) };
        assert_eq!(end_ticket(&set, ticket, &end, ms(1)), []);
    }
    busy(&set, "1", ServerHint::After(secs(3)), ms(1));
    assert_eq!(in_service(&set, ms(2)), ["2"]);
    assert_eq!(in_service(&set, secs(4)), ["1", "2"]);
    busy(&set, "2", ServerHint::After(secs(2)), secs(4));
    judge(&set, "1", Health::NotConnected, secs(4));
    assert_eq!(in_service(&set, secs(4) + ms(500)), ["0", "1", "2"], "nothing else is left");
    assert_eq!(in_service(&set, secs(5) + ms(500)), ["1"], "it has returned, and the others have asked for more time");
    assert_eq!(in_service(&set, secs(6)), ["1", "2"]);
    assert_eq!(in_service(&set, secs(9) + ms(1)), ["0", "1", "2"]);
    assert_eq!(judge(&set, "0", Health::Failed, secs(10)), []);
}

/// In an earlier tier, all may be out, whatever the reason. The next tier takes over.
// C-9, C-13
#[test]
fn shut_tier_gives_way_to_the_next() {
    let set = Set::new();
    set.update([(0, "a"), (0, "b"), (1, "x")], |_| (), Duration::ZERO);
    judge(&set, "a", Health::NotConnected, ms(1));
    busy(&set, "b", ServerHint::After(secs(9)), ms(1));
    assert_eq!(in_service(&set, ms(2)), ["x"]);
    judge(&set, "x", Health::NotConnected, ms(2));
    assert_eq!(in_service(&set, ms(3)), ["x"], "the last tier is never empty");
}

/// Without ejections, neither refused connections nor waits take an endpoint out.
#[test]
fn set_without_ejections_keeps_shut_ones() {
    let set = Set::new().without_ejections();
    set.update([(0, "0"), (0, "1")], |_| (), ms(0));
    assert_eq!(judge(&set, "0", Health::NotConnected, ms(1)), []);
    assert_eq!(busy(&set, "1", ServerHint::After(secs(9)), ms(1)), []);
    assert_eq!(in_service(&set, ms(2)), ["0", "1"]);
}
