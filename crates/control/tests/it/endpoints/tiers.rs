//! Tests of tiers: how many picks each one gets while an earlier one is out, and on its way back.

use std::sync::Arc;

use reattempt_control::Place;
use reattempt_testing::secs;

use super::*;

/// Returns a set whose first tier has so many endpoints, named "0" and so on; "x" and "y" are its second tier.
fn tiers_of(length: usize) -> Set {
    let set = Set::new();
    let first = (0..length).map(|number| (0, number.to_string()));
    set.update(first.chain(["x", "y"].map(|name| (1, name.to_owned()))), |_| (), Duration::ZERO);
    set
}

/// Returns the share of the picks at the first tier.
fn share_of_first(set: &Set, now: Duration) -> f64 {
    let mut random = Mixed(now.as_secs());
    let is_first = |ticket: &Ticket| ticket.name().parse::<u32>().is_ok();
    let picks = (0..3000).filter(|_| is_first(&pick(set, &Trail::new(), now, &mut random).ticket));
    picks.count() as f64 / 3000.0
}

#[track_caller]
fn assert_share(set: &Set, now: Duration, expected: f64) {
    let share = share_of_first(set, now);
    assert!((share - expected).abs() < 0.03, "{share} instead of {expected}");
}

/// A tier of which half is in service gets all picks. With less, it gets its share in service.
// D-17
#[test]
fn half_a_tier_gets_all_picks() {
    let set = tiers_of(4);
    for (dead, share) in [("0", 1.0), ("1", 1.0), ("2", 0.25), ("3", 0.0)] {
        kill(&set, dead, ms(1));
        assert_share(&set, ms(2), share);
    }
}

/// After an outage of a tier, each endpoint that returns brings its share of the picks, until none of the outage is
/// left.
// D-17
#[test]
fn returning_tier_gets_its_share() {
    let set = tiers_of(3);
    // Each is out for five seconds.
    for (name, at) in [("0", 1), ("1", 2), ("2", 3)] {
        kill(&set, name, secs(at));
    }
    assert_share(&set, secs(4), 0.0);
    for (now, share) in [(6, 0.333), (7, 0.667), (8, 1.0)] {
        assert_share(&set, secs(now) + ms(10), share);
    }
}

/// An endpoint that stays dead after an outage of its tier sends no calls to the next one: it came back with the others
/// and was ejected alone.
// D-17
#[test]
fn dead_one_after_an_outage_is_no_outage() {
    let set = tiers_of(3);
    for (name, at) in [("0", 1), ("1", 2), ("2", 3)] {
        kill(&set, name, secs(at));
    }
    let back = secs(7) + ms(10);
    drop(pick(&set, &Trail::new(), back, &mut Mixed(1)));
    judge(&set, "1", Health::Served, back);
    // One failure ejects it, before "2" is back. Less than half is in service, as in another outage.
    judge(&set, "0", Health::Failed, back);
    assert_eq!(out(&set, back), ["0", "2"]);
    assert_share(&set, secs(9), 0.667);
    let again = secs(18);
    drop(pick(&set, &Trail::new(), again, &mut Mixed(1)));
    judge(&set, "0", Health::Failed, again);
    assert_eq!(out(&set, again + ms(1)), ["0"]);
    assert_share(&set, again + ms(1), 1.0);
}

/// A failing endpoint of a later tier gets no calls of an earlier tier that is partly in service.
// D-17
#[test]
fn failing_tier_relieves_no_other() {
    let set = tiers_of(3);
    kill_all(&set, &["0", "1"], ms(1));
    assert_share(&set, ms(2), 0.333);
    // Three failures raise the rate above a quarter.
    (0..3).for_each(|_| drop(judge(&set, "x", Health::Failed, ms(3))));
    let mut random = Mixed(1);
    let picks = (0..1000).map(|_| pick(&set, &Trail::new(), ms(4), &mut random).ticket.name().to_string());
    assert!(picks.filter(|name| name == "x").count() == 0);
    // As long as the other one of its tier is well, that one is cheaper.
    assert_share(&set, ms(4), 0.333);
    (0..3).for_each(|_| drop(judge(&set, "y", Health::Failed, ms(5))));
    assert_share(&set, ms(6), 1.0);
}

/// While tiers share the picks, an attempt still goes to an untried endpoint as long as one is in service.
// E-1
#[test]
fn shared_picks_avoid_tried_endpoints() {
    let set = tiers_of(5);
    kill_all(&set, &["0", "1", "2"], ms(1));
    let mut random = Mixed(1);
    for _ in 0..500 {
        let (mut trail, mut tried) = (Trail::new(), Vec::new());
        for attempt in 1..=4 {
            let picked = pick(&set, &trail, ms(2), &mut random);
            let id = picked.ticket.id();
            assert!(!tried.contains(&id), "{attempt}: {:?}", picked.ticket);
            assert_eq!(picked.elsewhere, attempt < 4, "{attempt}");
            tried.push(id);
            trail.push(id);
        }
    }
}

/// A tier that is out as a whole leaves half of the last one in service, which then gets all picks.
// E-4
#[test]
fn last_tier_keeps_half() {
    let set = tiers_of(3);
    kill_all(&set, &["0", "1", "2", "x"], ms(1));
    assert_eq!(out(&set, ms(2)), ["0", "1", "2", "x"]);
    assert_share(&set, ms(2), 0.0);
    kill(&set, "y", ms(2));
    assert_eq!(out(&set, ms(3)), ["0", "1", "2"]);
    assert_share(&set, ms(3), 0.0);
    // The first endpoint that returns is not held up by the failing last tier.
    assert_share(&set, secs(6), 1.0);
}

/// A call that has tried two endpoints of a tier goes to the next one, ejected or not, and then to those that are left.
// T-1, E-1
#[test]
fn two_tried_go_to_the_next_tier() {
    let set = tiers_of(4);
    set.update(
        (0..4).map(|number| (0, number.to_string())).chain([
            (1, "x".into()),
            (1, "y".into()),
            (1, "z".into()),
            (2, "s".into()),
        ]),
        |_| (),
        ms(0),
    );
    for dead in [vec![], vec!["0", "1"]] {
        dead.iter().for_each(|name| drop(judge(&set, name, Health::NotConnected, ms(1))));
        for seed in 0..100 {
            let (mut trail, mut random, mut names) = (Trail::new(), Mixed(seed), String::new());
            for name in &dead {
                trail.push(view(&set, name, ms(1)).id);
            }
            for _ in dead.len()..8 {
                let picked = pick(&set, &trail, ms(2), &mut random);
                trail.push(picked.ticket.id());
                names.push(match &**picked.ticket.name() {
                    "x" | "y" | "z" => 'x',
                    "s" => 's',
                    _ => '0',
                });
            }
            let expected = if dead.is_empty() { "00xxs00x" } else { "xxs00x" };
            assert_eq!(names, expected);
        }
    }
}

/// A call whose key is known to one tier stays there: at untried endpoints first, then at the cheapest. If none of the
/// tier is in service, it is sent nowhere.
// E-2, trap 71
#[test]
fn bound_call_stays_in_its_tier() {
    let set = tiers_of(3);
    let tier = |pick: &Pick<()>| (pick.tier.unwrap().id.number(), pick.tier.unwrap().elsewhere, pick.elsewhere);
    for seed in 0..100 {
        let (mut trail, mut random) = (Trail::new(), Mixed(seed));
        let first = pick(&set, &trail, ms(1), &mut random);
        assert_eq!(tier(&first), (0, true, true));
        trail.push(first.ticket.id());
        trail.stay_in(first.tier.unwrap().id);
        for left in [true, false, false, false] {
            let next = pick(&set, &trail, ms(1), &mut random);
            assert_eq!(tier(&next), (0, left, left));
            assert_eq!(trail.contains(next.ticket.id()), trail.ids().len() >= 3);
            trail.push(next.ticket.id());
        }
    }
    let (mut trail, mut other) = (Trail::new(), Trail::new());
    trail.stay_in(pick(&set, &trail, ms(1), &mut Mixed(1)).tier.unwrap().id);
    kill_all(&set, &["0", "1"], ms(1));
    assert_eq!(
        tier(&pick(&set, &trail, ms(2), &mut Mixed(1))),
        (0, false, false),
        "two thirds of the calls spill over"
    );
    kill(&set, "2", ms(2));
    assert_eq!(out(&set, ms(3)), ["0", "1", "2"]);
    assert!(set.pick(&trail, ms(3), &mut Mixed(1)).is_none());
    other.stay_in(pick(&set, &other, ms(3), &mut Mixed(1)).tier.unwrap().id);
    assert_eq!(tier(&pick(&set, &other, ms(3), &mut Mixed(1))), (1, true, true));
    assert!(tiers_of(3).pick(&other, ms(3), &mut Mixed(1)).is_none(), "the tier of another set");
    assert_eq!(pick(&set_of(2), &Trail::new(), ms(1), &mut Mixed(1)).tier, None);
}

/// A tier leaves a share of the calls to the next one from the start, and more as its endpoints are out: it takes at
/// most 1.4 times its part in service.
// W-3
#[test]
fn tier_spills_by_share_and_health() {
    for (spill, shares) in
        [(0.1, [0.9, 0.9, 0.84, 0.4]), (0.5, [0.5, 0.5, 0.5, 0.4]), (f64::NAN, [1.0, 1.0, 0.84, 0.4])]
    {
        let set = Set::new().spill(spill);
        let first = (0..5).map(|number| (0, number.to_string()));
        set.update(first.chain(["x", "y"].map(|name| (1, name.to_owned()))), |_| (), ms(0));
        assert_share(&set, ms(0), shares[0]);
        for (dead, share) in ["0", "1", "2"].into_iter().zip(&shares[1..]) {
            kill(&set, dead, ms(1));
            assert_share(&set, ms(2), *share);
        }
    }
    let one_tier = Set::new().spill(0.5);
    one_tier.update([(0, "0"), (0, "1")], |_| (), ms(0));
    assert_share(&one_tier, ms(1), 1.0);
}

/// Tiers that share their state are one tier for idempotency keys.
// W-3, E-2
#[test]
fn zones_share_their_keys() {
    let set = Set::new().tiers_share_state();
    set.update([(0, "0"), (1, "x")], |_| (), ms(0));
    assert!(!set.is_tiered());
    let mut trail = Trail::new();
    for (name, elsewhere) in [("0", true), ("x", false)] {
        let picked = pick(&set, &trail, ms(1), &mut Mixed(1));
        assert_eq!((&**picked.ticket.name(), picked.elsewhere, picked.tier), (name, elsewhere, None));
        trail.push(picked.ticket.id());
    }
}

/// Returns a set of three endpoints and two reserves of weight 0.
fn with_reserve() -> Set {
    let set = Set::new();
    let reserve = ["x", "y"].map(|name| (Place::new().weight(0), name.to_owned()));
    set.update((0..3).map(|number| (Place::new(), number.to_string())).chain(reserve), |_| (), ms(0));
    set
}

/// A reserve gets no calls while half of the others are in service, then those of the part that is out, and all if the
/// others accept no connection.
// W-3
#[test]
fn reserve_replaces_what_is_out() {
    let set = with_reserve();
    for (dead, share) in [("none", 1.0), ("0", 1.0), ("1", 0.333), ("2", 0.0)] {
        if dead != "none" {
            judge(&set, dead, Health::NotConnected, ms(1));
        }
        assert_share(&set, ms(2), share);
    }
    assert_eq!(out(&set, ms(2)), ["0", "1", "2"]);
    // Once the reserve is out as well, all of the others are tried.
    for name in ["x", "y"] {
        judge(&set, name, Health::NotConnected, ms(3));
    }
    assert_share(&set, ms(4), 1.0);
    assert_eq!(out(&set, ms(4)), ["x", "y"]);
}

/// A majority that fails but accepts connections stays in service beside a reserve, which may be dead.
// W-3, E-4
#[test]
fn failing_majority_keeps_its_calls() {
    let set = with_reserve();
    kill_all(&set, &["0", "1", "2"], ms(1));
    assert_eq!(out(&set, ms(2)), Vec::<String>::new());
    assert_share(&set, ms(2), 1.0);
}

/// A call that has tried two endpoints goes to the reserve before a third, also if its key binds it to their tier.
// W-3, T-1, E-1
#[test]
fn two_tried_go_to_the_reserve() {
    for bound in [false, true] {
        let set = with_reserve();
        set.update(
            set.view(ms(0))
                .iter()
                .map(|view| (Place::from(view), Arc::clone(&view.name)))
                .chain([(Place::new().tier(1), "z".into())])
                .collect::<Vec<_>>(),
            |_| (),
            ms(0),
        );
        for seed in 0..50 {
            let (mut trail, mut random, mut names) = (Trail::new(), Mixed(seed), String::new());
            for _ in 0..5 {
                let picked = pick(&set, &trail, ms(1), &mut random);
                assert!(!trail.contains(picked.ticket.id()));
                let tier = picked.tier.unwrap();
                if bound {
                    trail.stay_in(tier.id);
                    assert_eq!((tier.elsewhere, picked.elsewhere), (trail.ids().len() < 4, trail.ids().len() < 4));
                }
                trail.push(picked.ticket.id());
                names.push(match &**picked.ticket.name() {
                    "x" | "y" => 'x',
                    "z" => 'z',
                    _ => '0',
                });
            }
            assert_eq!(names, if bound { "000xx" } else { "00xxz" });
        }
    }
}
