//! Ejection rules that users set.

use reattempt_control::{EjectReason, EjectionRules};
use reattempt_testing::secs;

use super::ejections::ejected;
use super::*;

fn set_with(rules: EjectionRules, length: usize) -> Set {
    let set = Set::new().ejection_rules(rules);
    set.update((0..length).map(|name| (0, name.to_string())), |_| (), ms(0));
    set
}

/// Fails calls one after another, and returns their number at the first ejection, with its reason and its time.
fn first_ejection(set: &Set, most: u32) -> Option<(u32, EjectReason, Duration)> {
    (1..=most).find_map(|call| {
        let events = judge(set, "0", Health::Failed, ms(call.into()));
        ejected(&events).first().map(|(_, reason, lasts)| (call, *reason, *lasts))
    })
}

/// The number in a row, the share of a volume and the times are those of the rules, and each limit can be turned off.
#[test]
fn ejections_follow_their_rules() {
    let rules = EjectionRules::new().lasts(secs(1), secs(60));
    let in_a_row = EjectReason::InARow;
    for (rules, expected) in [
        (rules.in_a_row(7), Some((7, in_a_row, secs(1)))),
        (rules.in_a_row(0), Some((1, in_a_row, secs(1)))),
        (rules.without_in_a_row(), Some((20, EjectReason::FailureRate, secs(1)))),
        (rules.without_in_a_row().failure_rate(0.85, 50), Some((50, EjectReason::FailureRate, secs(1)))),
        (rules.without_in_a_row().failure_rate(1.0, u32::MAX), None),
        (rules.without_in_a_row().without_failure_rate(), None),
        (rules.in_a_row(40_000).without_failure_rate(), None),
    ] {
        assert_eq!(first_ejection(&set_with(rules, 2), 9_000), expected, "{rules:?}");
    }
    // A success among ten failures keeps the rate above 85 %, and below 95 %.
    for (share, is_ejected) in [(0.85, true), (0.95, false)] {
        let set = set_with(EjectionRules::new().without_in_a_row().failure_rate(share, 50), 2);
        let mut calls = (0..200).map(|call| {
            let health = if call % 11 == 10 { Health::Served } else { Health::Failed };
            judge(&set, "0", health, ms(call))
        });
        assert_eq!(calls.any(|events| !events.is_empty()), is_ejected, "{share}");
    }
}

/// Without a limit in a row, an endpoint that has returned is still on trial: its first failure ejects it again, for
/// twice the time, up to the longest.
// P-5, P-6
#[test]
fn times_double_up_to_the_longest() {
    let rules = EjectionRules::new().without_in_a_row().failure_rate(0.5, 10).lasts(ms(300), secs(3));
    let set = set_with(rules, 2);
    let (_, _, mut lasts) = first_ejection(&set, 10).unwrap();
    let (mut now, mut times) = (ms(10), vec![lasts.as_millis()]);
    for _ in 0..5 {
        now += lasts + ms(2);
        let events = judge(&set, "0", Health::Failed, now);
        lasts = ejected(&events)[0].2;
        times.push(lasts.as_millis());
    }
    assert_eq!(times, [300, 600, 1200, 2400, 3000, 3000]);
}

/// The largest share that may be out is not rounded up. All are never out.
#[test]
fn share_that_may_be_out_is_a_setting() {
    for (share, length, most) in [(0.1, 9, 0), (0.1, 10, 1), (0.34, 3, 1), (1.0, 3, 2), (-1.0, 3, 0), (f64::NAN, 3, 0)]
    {
        for dead in 0..=length {
            let set = set_with(EjectionRules::new().at_most(share), length);
            (0..dead).for_each(|name| drop(kill(&set, &name.to_string(), ms(1))));
            let expected = if dead > most { 0 } else { dead };
            assert_eq!(out(&set, ms(2)).len(), expected, "{share}: {dead} of {length}");
        }
    }
}
