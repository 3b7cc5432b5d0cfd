//! Tests of the adaptive throttle.

use std::time::Duration;

use reattempt_control::Throttle;
use reattempt_core::guard::{Admit, Arrival, End, Guard, GuardKind, Health, Reason};

use crate::guards::{HOST, NOW, SECOND, admit, at, reason};

const MINUTE: Duration = Duration::from_secs(60);

fn judged(health: Health) -> End {
    End::judged(health, Duration::ZERO)
}

fn seeded() -> Throttle {
    Throttle::new().seed(7)
}

/// Sends this many calls with this outcome, evenly over a second. Returns how many were admitted.
fn calls(throttle: &Throttle, number: u32, health: Health, now: Duration) -> u32 {
    let times = (0..number).map(|call| now + SECOND * call / number);
    times
        .filter_map(|now| Some((admit(throttle, now).ok()?, now)))
        .map(|(ticket, now)| throttle.end_ticket(ticket, &judged(health), now))
        .fold(0, |sent, _| sent + 1)
}

/// Returns requests, accepts, and the probability in thousandths.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a probability is from 0 to 1")]
fn counts(throttle: &Throttle, now: Duration) -> (u32, u32, u32) {
    let counts = throttle.counts_at(HOST, now);
    (counts.requests, counts.accepts, (counts.probability * 1000.0).round() as u32)
}

#[test]
fn refuses_what_is_beyond_twice_the_accepts() {
    let throttle = seeded();
    calls(&throttle, 100, Health::Served, NOW);
    assert_eq!(counts(&throttle, NOW), (100, 100, 0));
    let sent = calls(&throttle, 1000, Health::Overloaded, NOW);
    let (requests, accepts, probability) = counts(&throttle, NOW);
    assert_eq!((requests, accepts), (1100, 100));
    assert_eq!(probability, 817, "(1100 − 2 · 100) / 1101");
    // It first receives 2 · 100 calls and then ever fewer: about 200 · (1 + ln(1100 / 200)) in total.
    assert!((350..=500).contains(&sent), "{sent}");
}

#[test]
fn refusal_names_guard_and_reason() {
    let throttle = seeded().max_probability(1.0);
    calls(&throttle, 1000, Health::Overloaded, NOW);
    let refused = (0..100).find_map(|_| admit(&throttle, NOW).err()).unwrap();
    assert_eq!((refused.guard(), refused.reason()), (GuardKind::THROTTLE, Reason::Shed));
    assert_eq!(refused.wait(), None);
    assert!(throttle.would_admit(&Arrival::new(HOST, NOW)).is_ok(), "it would draw");
}

#[test]
fn one_call_in_ten_is_sent_in_an_outage() {
    let throttle = seeded();
    calls(&throttle, 10_000, Health::Unavailable, NOW);
    assert_eq!(counts(&throttle, NOW).2, 900);
    let sent = calls(&throttle, 10_000, Health::Unavailable, NOW);
    assert!((900..1100).contains(&sent), "{sent}");
}

// GUARDS G6: 500 is not overload, and neither are the caller's errors and abandoned calls.
#[test]
fn only_overload_is_no_accept() {
    let throttle = seeded();
    for health in [Health::Served, Health::Failed, Health::Ignored] {
        assert_eq!(calls(&throttle, 100, health, NOW), 100);
    }
    for end in [End::Abandoned { after: SECOND }, End::Unsent] {
        let ticket = admit(&throttle, NOW).unwrap();
        assert!(throttle.end_ticket(ticket, &end, NOW).is_none());
    }
    let ticket = admit(&throttle, NOW).unwrap();
    let ticket = throttle.renew(ticket, &Arrival::new(HOST, NOW)).unwrap();
    assert_eq!(counts(&throttle, NOW), (302, 302, 0), "the unsent one never arrived");
    throttle.end_ticket(ticket, &judged(Health::Overloaded), NOW);
    assert_eq!(counts(&throttle, NOW), (302, 301, 0));
}

/// Nothing is refused after one failed call of one, nine of nine, or a few per minute.
// G-18
#[test]
fn few_calls_refuse_nothing() {
    let throttle = seeded();
    assert_eq!(calls(&throttle, 1, Health::Overloaded, NOW), 1);
    assert_eq!(counts(&throttle, NOW).2, 0);
    assert_eq!(calls(&throttle, 8, Health::Overloaded, NOW), 8);
    assert_eq!(counts(&throttle, NOW).2, 0);
    assert_eq!(calls(&throttle, 1, Health::Overloaded, NOW), 1);
    assert_eq!(counts(&throttle, NOW).2, 900);
    let slow = seeded();
    for second in 0..100 {
        let now = NOW + SECOND * second;
        assert_eq!(calls(&slow, 4, Health::Overloaded, now), 4, "second {second}");
    }
    let eager = seeded().inactive_below(1, 0);
    calls(&eager, 1, Health::Overloaded, NOW);
    assert_eq!(counts(&eager, NOW + MINUTE).2, 500);
}

// Calls in flight count for neither side, so a slow start is not overload.
#[test]
fn calls_under_way_are_no_refusals() {
    let throttle = seeded();
    let tickets: Vec<_> = (0..1000).map(|_| admit(&throttle, NOW).unwrap()).collect();
    assert_eq!(counts(&throttle, NOW), (1000, 1000, 0));
    for ticket in tickets {
        throttle.end_ticket(ticket, &judged(Health::Unavailable), NOW + SECOND);
    }
    assert_eq!(counts(&throttle, NOW + SECOND), (1000, 0, 900));
}

#[test]
fn counts_leave_bucket_by_bucket() {
    let throttle = seeded().inactive_below(1, 0);
    calls(&throttle, 100, Health::Served, NOW);
    calls(&throttle, 100, Health::Overloaded, NOW + MINUTE);
    let before = counts(&throttle, NOW + MINUTE);
    assert_eq!(counts(&throttle, NOW + SECOND * 110), before);
    assert_eq!(counts(&throttle, NOW + SECOND * 121), (100, 0, 900));
    assert_eq!(counts(&throttle, NOW + SECOND * 300), (0, 0, 0));
}

/// An outcome counts in its call's bucket, and not at all once that bucket was dropped.
// G-4
#[test]
fn a_late_outcome_counts_in_its_bucket() {
    let throttle = seeded();
    let (late, too_late) = (admit(&throttle, NOW).unwrap(), admit(&throttle, NOW).unwrap());
    throttle.end_ticket(late, &judged(Health::Overloaded), NOW + MINUTE);
    assert_eq!(counts(&throttle, NOW + MINUTE), (2, 1, 0));
    calls(&throttle, 10, Health::Served, NOW + MINUTE * 3);
    throttle.end_ticket(too_late, &judged(Health::Overloaded), NOW + MINUTE * 3);
    assert_eq!(counts(&throttle, NOW + MINUTE * 3), (10, 10, 0));
}

// The share of calls sent doubles with each window, because the server gets twice what it accepts.
#[test]
fn it_recovers_with_the_server() {
    let throttle = seeded();
    calls(&throttle, 2000, Health::Overloaded, NOW);
    let mut now = NOW + SECOND;
    for _ in 0..400 {
        calls(&throttle, 100, Health::Served, now);
        now += SECOND;
    }
    assert_eq!(calls(&throttle, 100, Health::Served, now), 100);
}

/// A time before the latest one seen changes nothing.
// G-12
#[test]
fn time_that_goes_back_or_stands_still() {
    let throttle = seeded();
    calls(&throttle, 100, Health::Overloaded, NOW);
    let before = counts(&throttle, NOW);
    assert_eq!(counts(&throttle, Duration::ZERO), before);
    let _ticket = admit(&throttle, Duration::ZERO);
    assert_eq!(counts(&throttle, at(1)).0, before.0 + 1);
    assert_eq!(counts(&throttle, Duration::MAX), (0, 0, 0));
    assert!(admit(&throttle, NOW).is_ok());
}

#[test]
fn settings_outside_their_range() {
    let shown = |k| format!("{:?}", seeded().multiplier(k));
    for (k, clamped) in [(f64::NAN, 1.0), (0.99, 1.0), (-1.0, 1.0), (f64::INFINITY, 100.0)] {
        assert_eq!(shown(k), shown(clamped), "{k}");
    }
    let shown = |most| format!("{:?}", seeded().max_probability(most));
    for (most, clamped) in [(f64::NAN, 0.0), (-0.1, 0.0), (1.1, 1.0)] {
        assert_eq!(shown(most), shown(clamped), "{most}");
    }
    let never = seeded().max_probability(0.0);
    assert_eq!(calls(&never, 1000, Health::Overloaded, NOW), 1000);
    let always = seeded().max_probability(1.0).multiplier(1.0);
    assert!(calls(&always, 1000, Health::Overloaded, NOW) < 100);
    for window in [Duration::ZERO, Duration::from_nanos(1), Duration::MAX] {
        let throttle = seeded().window(window).inactive_below(0, 0);
        calls(&throttle, 100, Health::Overloaded, NOW);
        let far = Duration::MAX - SECOND * 2;
        calls(&throttle, 100, Health::Overloaded, far);
        assert!(counts(&throttle, far).0 <= 200);
    }
}

/// Clones and new settings keep the counts, and destinations are bounded.
// G-9, G-19, G-20, trap 52
#[test]
fn counts_are_kept_and_bounded() {
    let throttle = seeded().max_destinations(8);
    calls(&throttle.clone(), 1000, Health::Overloaded, NOW);
    let before = counts(&throttle, NOW);
    throttle.replace_settings(&seeded().max_probability(0.5));
    assert_eq!(counts(&throttle, NOW), (before.0, before.1, 500));
    for number in 0..50_000_u32 {
        let (host, now) = (format!("host-{number}"), NOW + Duration::from_micros(number.into()));
        assert!(matches!(throttle.admit(&Arrival::new(&host, now)), Admit::Admitted(_)));
        if number % 4 == 0 {
            assert_eq!(counts(&throttle, now).0, before.0, "it is used");
        }
    }
    let text = format!("{throttle:?}");
    assert!(text.contains("destinations: 8") && text.contains(HOST), "{text}");
    assert_eq!(counts(&throttle, NOW).0, before.0);
    throttle.replace_settings(&seeded().window(MINUTE));
    assert_eq!(counts(&throttle, NOW), (0, 0, 0));
    calls(&throttle, 1000, Health::Overloaded, NOW + MINUTE * 9);
    let shed = (0..100).map(|_| admit(&throttle, NOW + MINUTE * 9)).find(Result::is_err);
    assert_eq!(reason(shed.unwrap()), Reason::Shed);
}

/// Returns the decisions of a seeded throttle during an outage.
fn drawn(throttle: Throttle, host: &str) -> Vec<bool> {
    let draw = |call: u64| {
        let now = NOW + Duration::from_millis(call);
        match throttle.admit(&Arrival::new(host, now)) {
            Admit::Admitted(ticket) => {
                assert!(throttle.end_ticket(ticket, &judged(Health::Overloaded), now).is_none());
                true
            }
            _ => false,
        }
    };
    (0..500).map(draw).collect()
}

#[test]
fn same_seed_and_destination_draw_alike() {
    let draws = |seed, host| drawn(Throttle::new().seed(seed), host);
    assert_eq!(draws(7, HOST), draws(7, HOST));
    let others = [draws(7, "b"), draws(7, "c"), draws(8, HOST), draws(9, HOST)];
    for (at, one) in others.iter().enumerate() {
        assert_ne!(*one, draws(7, HOST), "{at}");
        assert!(others[..at].iter().all(|other| other != one), "{at}");
    }
}

/// After sixteen more buckets, the call's own bucket was dropped.
// G-4
#[test]
fn outcome_past_the_window_is_nothing() {
    let throttle = seeded();
    let late = admit(&throttle, NOW).unwrap();
    calls(&throttle, 10, Health::Served, NOW + MINUTE * 2);
    throttle.end_ticket(late, &judged(Health::Overloaded), NOW + MINUTE * 2);
    assert_eq!(counts(&throttle, NOW + MINUTE * 2), (10, 10, 0));
}

/// Requests that have left the window are not counted, even if no call has arrived since.
#[test]
fn counts_are_those_of_the_given_time() {
    let throttle = seeded();
    calls(&throttle, 3, Health::Served, NOW);
    let requests = |minutes| throttle.counts_at(HOST, NOW + MINUTE * minutes).requests;
    assert_eq!([0, 1, 3].map(requests), [3, 3, 0]);
}

#[test]
fn settings_are_clamped_from_above() {
    let rows = [
        (seeded().multiplier(1000.0), seeded().multiplier(100.0)),
        (seeded().max_probability(f64::INFINITY), seeded().max_probability(1.0)),
    ];
    for (beyond, end) in rows {
        assert_eq!(format!("{beyond:?}"), format!("{end:?}"));
        assert_ne!(format!("{end:?}"), format!("{:?}", seeded()), "the end is not the default");
    }
}
