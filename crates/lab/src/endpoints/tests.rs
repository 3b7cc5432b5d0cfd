//! The scenes of endpoints: what the rules reach, and which order they have.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    endpoints: Endpoints,
}

/// Returns the figures of each rule in one scene.
fn figures(arguments: &[&str], seed: u64) -> Vec<Figures> {
    let line = Line::try_parse_from([&["endpoints"], arguments].concat()).unwrap();
    line.endpoints.shown(seed).unwrap().pop().unwrap().rules
}

fn success(arguments: &[&str]) -> Vec<f64> {
    figures(arguments, 1).iter().map(|figures| figures.success).collect()
}

/// A dead minority costs no calls, and at most one attempt in a thousand. tower's rule loses most calls.
// E-6
#[test]
fn dead_minority_loses_no_call() {
    for scene in ["1-of-3", "8-of-20"] {
        let [ours, tower, turns, _] = &figures(&["--scenes", scene], 1)[..] else { panic!() };
        assert!(ours.success > 0.999 && ours.after > 0.999, "{ours:?}");
        assert!(ours.at_faulty < 0.001 && ours.p99.unwrap() < 0.06, "{ours:?}");
        assert!(tower.success < 0.5 && turns.success < 0.98, "{}", tower.success);
        assert!(ours.busiest.unwrap() < 1.05, "{ours:?}");
    }
}

/// With a dead majority, success is within two percentage points of the possible: 66.7, 90 and 60 % under overload, and
/// 100 % with room to spare. Hardly an attempt goes to a dead server. After the fault, the others are overloaded until
/// these have returned, which takes 12 s at most.
// E-4, E-20, C-3, C-9
#[test]
fn dead_majority_leaves_what_is_possible() {
    for (scene, possible) in [("2-of-3", 2.0 / 3.0), ("11-of-20", 0.9), ("14-of-20", 0.6)] {
        let ours = &figures(&["ours", "--scenes", scene], 1)[0];
        assert!((ours.success - possible).abs() < 0.02, "{scene}: {}", ours.success);
        assert!(ours.at_faulty < 0.002 && ours.attempts_per_call < 1.4, "{scene}: {ours:?}");
        assert!(ours.after > 0.98, "{scene}: {}", ours.after);
    }
    for scene in ["2-of-3", "14-of-20"] {
        let with_room = success(&["ours", "--scenes", scene, "--load", "0.25"])[0];
        assert!(with_room > 0.999, "{scene}: {with_room}");
    }
}

/// One dead, one half-failing and one slow server beside two good ones cost no calls and hardly any time.
// E-7
#[test]
fn five_servers_of_all_kinds_lose_nothing() {
    let [ours, tower, turns] = &figures(&["ours", "tower-p2c", "round-robin", "--scenes", "mixed"], 1)[..] else {
        panic!()
    };
    assert!(ours.success > 0.999 && ours.p99.unwrap() < 0.1, "{ours:?}");
    assert!(tower.success < 0.7 && turns.success < 0.7, "{} {}", tower.success, turns.success);
}

/// A server that returns ten times slower costs no call: the price keeps nearly all calls away until it is warm. Then
/// its share grows. Round robin loses calls.
// P-5
#[test]
fn cold_server_loses_no_call() {
    for fault in ["10s", "13s"] {
        let [ours, turns] = &figures(&["ours", "round-robin", "--scenes", "cold", "--fault", fault], 1)[..] else {
            panic!()
        };
        assert_eq!((ours.success, ours.after), (1.0, 1.0), "{ours:?}");
        assert!(turns.after < 0.99, "{}", turns.after);
        let share = |seconds: &[Second]| {
            let sum = |of: fn(&Second) -> u32| seconds.iter().map(|second| f64::from(of(second))).sum::<f64>();
            sum(|second| second.at_faulty) / sum(|second| second.attempts)
        };
        let fault: usize = fault.trim_end_matches('s').parse().unwrap();
        let after = &ours.per_second[20 + fault..];
        let returned = after.iter().position(|second| second.at_faulty > 0).unwrap();
        let cold = share(&after[returned..returned + 20]);
        assert!((0.001..0.02).contains(&cold), "{cold}");
        assert!(share(&after[35..]) > 0.08, "{ours:?}");
    }
}

/// If all servers fail alike, success is within 1.5 points of round robin's.
// E-8
#[test]
fn equal_failures_cost_no_success() {
    for load in ["0.5", "0.6", "0.7"] {
        let arguments = ["ours", "round-robin", "--scenes", "alike", "--load", load];
        for seed in [1, 2] {
            let [ours, turns] = &figures(&arguments, seed)[..] else { panic!() };
            assert!((ours.success - turns.success).abs() < 0.015, "{load}: {} {}", ours.success, turns.success);
        }
    }
}

/// The second tier takes over. Above its capacity it still serves what it can, because retries do not overload it
/// further.
// D-17
#[test]
fn second_tier_takes_over() {
    let spilled = &figures(&["ours", "--scenes", "tiers"], 1)[0];
    assert!(spilled.success > 0.999 && spilled.after > 0.999, "{spilled:?}");
    assert!(spilled.at_faulty < 0.01, "{spilled:?}");
    for (load, possible) in [("0.9", 1.0), ("1.1", 1.0 / 1.1), ("1.3", 1.0 / 1.3)] {
        let over = &figures(&["ours", "--scenes", "tiers", "--load", load], 1)[0];
        assert!((over.success - possible).abs() < 0.02, "{load}: {}", over.success);
    }
}

/// The first tier returns within 20 s and does not fail again, whether the second tier has room or is overloaded. If it
/// got all calls at its first server's return, it would alternate for minutes, and 94 and 82 % of the calls would
/// succeed.
// D-17
#[test]
fn returning_tier_does_not_flap() {
    for (load, success) in [("0.9", 0.999), ("1.1", 0.97), ("1.3", 0.92)] {
        for seed in [1, 2] {
            let ours = &figures(&["ours", "--scenes", "tiers", "--load", load], seed)[0];
            assert!(ours.after > success, "{load}: {}", ours.after);
            let of_first = |second: &Second| f64::from(second.at_faulty) / f64::from(second.attempts);
            let after: Vec<_> = ours.per_second.iter().skip(80).take(40).map(of_first).collect();
            let highest = |until: usize| after[..until].iter().copied().fold(0.0, f64::max);
            // The share varies by chance, but falls back by no more than a server's.
            assert!((1..40).all(|second| after[second] > highest(second) - 0.34), "{load}: {after:?}");
            assert!(after[20..].iter().all(|share| *share > 0.95), "{load}: {after:?}");
        }
    }
}

/// After one answer of half a second among 20 ms, a server soon has its share of the calls again.
// P-1, P-2, field 34, trap 68
#[test]
fn slow_answer_is_soon_forgotten() {
    for seed in [1, 2, 3] {
        let ours = &figures(&["ours", "--scenes", "one-slow"], seed)[0];
        assert!(ours.at_faulty > 0.32 && ours.p999.unwrap() < 0.06, "{ours:?}");
    }
}

/// A server that stops for 5 or 15 s, as under SIGSTOP, costs no call and is back within 14 s.
// P-1, P-5, P-6
#[test]
fn stopped_server_is_back_soon() {
    for fault in ["5s", "15s", "60s"] {
        for seed in [1, 2, 3] {
            let ours = &figures(&["ours", "--scenes", "stopped", "--fault", fault], seed)[0];
            assert!(ours.success > 0.999 && ours.after > 0.999, "{ours:?}");
            assert!(ours.back.unwrap() <= 14, "{fault}: {:?}", ours.back);
        }
    }
}

/// A server that never answers costs a call now and then: less than one in 1,000.
// P-7, field 33, trap 69
#[test]
fn silent_server_costs_few_calls() {
    for seed in [1, 2, 3] {
        let ours = &figures(&["ours", "--scenes", "silent"], seed)[0];
        assert!(ours.success > 0.999 && ours.at_faulty < 0.001, "{ours:?}");
        assert!(ours.back.unwrap() <= 14, "{ours:?}");
    }
}

/// Pauses of a second, one server after another, meet a few calls each. They draw no crowd to the server that has not
/// paused lately.
// P-3, trap 68
#[test]
fn pauses_meet_few_calls() {
    for seed in [1, 2, 3] {
        let ours = &figures(&["ours", "--scenes", "pauses"], seed)[0];
        assert!(ours.success > 0.999 && ours.p99.unwrap() < 0.05, "{ours:?}");
    }
}

/// The first calls after the outage of a tier lose at most 1.4 %. A tier that fails a fifth of the requests loses
/// hardly a call either, because the third attempt goes to the next tier.
// T-1, C-3, C-9
#[test]
fn failing_tier_loses_few_calls() {
    for seed in [1, 2, 3] {
        let dead = &figures(&["ours", "--scenes", "tiers"], seed)[0];
        let first = &dead.per_second[20];
        assert!(f64::from(first.succeeded) >= 0.986 * f64::from(first.calls), "{first:?}");
        let failing = &figures(&["ours", "--scenes", "failing-tier"], seed)[0];
        assert!(failing.success > 0.997 && failing.at_faulty > 0.84, "{failing:?}");
    }
}

/// Envoy's rule ejects half of the servers, rounded down, and at least one. A dead one among three is soon the only one
/// out, and of two dead ones the other one stays.
#[test]
fn envoy_ejects_at_most_half() {
    let [one, two] = ["1-of-3", "2-of-3"].map(|scene| figures(&["envoy", "--scenes", scene], 1).remove(0));
    assert!(one.success > 0.999 && one.at_faulty < 0.001, "{one:?}");
    assert!((0.2..0.4).contains(&two.success) && two.at_faulty > 0.6, "{two:?}");
}

/// Envoy's rule ejects a server with an unusual success rate among five or more, although it never fails five times in
/// a row. So fewer attempts reach the half-failing server than without.
#[test]
fn envoy_sends_less_to_unusual_servers() {
    let mixed = &figures(&["envoy", "--scenes", "mixed"], 1)[0];
    assert!(mixed.success > 0.99 && mixed.at_faulty < 0.25, "{mixed:?}");
}

/// Envoy's priorities, which may be ejected as a whole, take over as well.
#[test]
fn envoy_spills_to_the_second_priority() {
    let tiers = &figures(&["envoy", "--scenes", "tiers"], 1)[0];
    assert!(tiers.success > 0.99 && tiers.after > 0.99 && tiers.at_faulty < 0.01, "{tiers:?}");
}

/// All rules see the same calls, which depend on the seed.
#[test]
fn all_rules_meet_the_same_calls() {
    let calls = |seed| -> Vec<Vec<u32>> {
        let shown = figures(&["--scenes", "1-of-3", "--fault", "5s"], seed);
        let of = |figures: &Figures| figures.per_second.iter().map(|second| second.calls).collect();
        shown.iter().map(of).collect()
    };
    let all = calls(1);
    assert!(all.len() == 4 && all.windows(2).all(|pair| pair[0][..45] == pair[1][..45]));
    assert_eq!(all, calls(1));
    assert_ne!(all, calls(2));
}
