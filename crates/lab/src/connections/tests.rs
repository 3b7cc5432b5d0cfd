//! The scenes of lost connections: closed forms, what the rules reach, and bounds of the harm that they may do.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    connections: Connections,
}

/// Returns the figures of each policy in one scene, for a fleet.
fn figures(words: &str) -> Vec<Figures> {
    let line = Line::try_parse_from([&["connections"], &words.split(' ').collect::<Vec<_>>()[..]].concat()).unwrap();
    line.connections.shown(31).unwrap().remove(0).policies
}

fn figure(words: &str) -> Figures {
    figures(words).remove(0)
}

/// Without retries, the calls in flight are lost: all 64 each second, those sent in the 10 ms around a GOAWAY, and 64
/// for each 1,000 responses.
#[test]
fn lost_calls_are_those_in_flight() {
    for (words, success) in [
        ("none --scenes reset --fleets 1x1488/s", 1.0 - 64.0 / 1488.0),
        ("none --scenes goaway --fleets 100x10/s", 0.9),
        ("none --scenes crash-1000 --fleets 1x1488/s --restart 0s", 1000.0 / 1064.0),
    ] {
        let Figures { success: found, attempts_per_call, recovery_seconds, .. } = figure(words);
        assert!((found - success).abs() < 0.01, "{words}: {found}");
        assert!((attempts_per_call - 1.0).abs() < 0.005 && recovery_seconds == Some(0), "{words}: {attempts_per_call}");
    }
}

/// A connection that ends costs no call, with any number of calls on it. Each lost call is repeated once. The former
/// rule loses most of them.
// C-2, C-4, C-5
#[test]
fn ended_connection_costs_no_call() {
    for scene in ["reset", "goaway"] {
        for fleet in ["1x64", "1x64/2", "1x256/4"] {
            let words = format!("none former ours --scenes {scene} --fleets {fleet} --fault 10s");
            let [none, former, ours] = &figures(&words)[..] else { panic!() };
            assert_eq!((ours.lost, ours.recovery_seconds), (0, Some(0)), "{words}");
            assert!(former.lost * 10 > none.lost, "{words}: {} {}", former.lost, none.lost);
            let once = 1.0 / none.success;
            assert!(ours.attempts_per_call < once + 0.03 && ours.peak < 1.7, "{words}: {ours:?}");
        }
    }
}

/// A token that dies under calls in flight costs none of them, if the client holds calls back while it renews it.
// C-16
#[test]
fn dead_token_costs_no_held_call() {
    let [none, ours] = &figures("none ours --scenes token --fleets 1x64/2 --fault 10s")[..] else { panic!() };
    assert!(none.lost > 100 && ours.lost == 0, "{none:?} {ours:?}");
    let unheld = figure("ours --scenes token-unheld --fleets 1x64/2 --fault 10s");
    assert!(unheld.lost > 0 && unheld.success > 0.97, "{unheld:?}");
}

/// Free replacements and members of events are bounded where nothing succeeds. Without a budget, the load of a server
/// that refuses every stream doubles or worse. A ratio adds its tokens to three flights.
// C-2, C-3, C-5, CI-2, CI-3
#[test]
fn hopeless_servers_get_few_attempts() {
    for (scene, attempts, peak) in [("refused-streams", 1.06, 3.5), ("hangs-up", 1.05, 3.5), ("all-refuse", 1.08, 4.8)]
    {
        let ours = figure(&format!("ours --scenes {scene} --fleets 1000x1/s"));
        assert!(ours.attempts_per_call < attempts && ours.peak < peak, "{scene}: {ours:?}");
    }
    for scene in ["refused-streams", "hangs-up"] {
        let ours = figure(&format!("ours --scenes {scene} --fleets 1x64"));
        assert!(ours.attempts_per_call < 1.005, "{scene}: {ours:?}");
    }
    let unlimited = figure("unlimited --scenes refused-streams --fleets 1000x1/s");
    assert!(unlimited.attempts_per_call > 2.0, "{unlimited:?}");
    for (fleet, attempts) in [("1000x1/s", 1.25), ("1x64", 1.005)] {
        let ratio = figure(&format!("ratio --scenes refused-streams --fleets {fleet}"));
        assert!(ratio.attempts_per_call < attempts, "{fleet}: {ratio:?}");
    }
}

/// Retries of members do not keep a balancer that resets all connections at 300 ms of work in its overload.
// C-5
#[test]
fn balancer_that_resets_all_recovers() {
    for fleet in ["20x50/s", "1000x1/s"] {
        let words = format!("none ours --scenes balancer --fleets {fleet}");
        let [none, ours] = &figures(&words)[..] else { panic!() };
        assert!(ours.recovery_seconds.unwrap() <= none.recovery_seconds.unwrap() + 3, "{fleet}: {ours:?}");
    }
}

/// A fleet on the command line has its clients, calls and connections.
#[test]
fn fleets_are_read_and_named() {
    for (text, title, rate) in [
        ("1x64", "1 × 64", 64.0 / 0.043),
        ("2x256/4", "2 × 256 on 4", 512.0 / 0.043),
        ("1000x0.5/s", "1000 × 0.5/s", 500.0),
        ("10x50/s/3", "10 × 50/s on 3", 500.0),
    ] {
        let fleet = Fleet::parse(text).unwrap();
        assert_eq!(fleet.title(), title);
        assert!((fleet.per_second() - rate).abs() < 1e-6, "{text}");
    }
    for text in ["", "64", "0x1", "1x0", "1x64/0", "1x64/65", "1x1/s/1/1", "1xNaN/s", "1x-1/s", "99999x99/s"] {
        assert!(Fleet::parse(text).is_err(), "{text}");
    }
}

/// The seed decides over every figure.
#[test]
fn seed_decides_over_the_scene() {
    let seeded = |seed| {
        let words = ["connections", "ours", "--scenes", "rolling", "--fleets", "10x50/s", "--fault", "5s"];
        Line::try_parse_from(words).unwrap().connections.shown(seed).unwrap().remove(0).policies
    };
    assert_eq!(seeded(1), seeded(1));
    assert_ne!(seeded(1), seeded(2));
}
