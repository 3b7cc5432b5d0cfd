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
/// 100 % with room to spare.
// E-4, E-20
#[test]
fn dead_majority_leaves_what_is_possible() {
    for (scene, possible) in [("2-of-3", 2.0 / 3.0), ("11-of-20", 0.9), ("14-of-20", 0.6)] {
        let ours = &figures(&["ours", "--scenes", scene], 1)[0];
        assert!((ours.success - possible).abs() < 0.02, "{scene}: {}", ours.success);
        assert!(ours.after > 0.999, "{scene}: {}", ours.after);
    }
    for scene in ["2-of-3", "14-of-20"] {
        let with_room = success(&["ours", "--scenes", scene, "--load", "0.25"])[0];
        assert!(with_room > 0.97, "{scene}: {with_room}");
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
#[test]
fn second_tier_takes_over() {
    let spilled = &figures(&["ours", "--scenes", "tiers"], 1)[0];
    assert!(spilled.success > 0.999 && spilled.after > 0.999, "{spilled:?}");
    assert!(spilled.at_faulty < 0.01, "{spilled:?}");
    let over = &figures(&["ours", "--scenes", "tiers", "--load", "1.3"], 1)[0];
    assert!((over.success - 1.0 / 1.3).abs() < 0.02, "{}", over.success);
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
