//! The simulation compared with closed forms, and the failures that an adaptive limit must not have.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    limits: Limits,
}

fn shown(arguments: &[&str], seed: u64) -> Vec<Shown> {
    let line = Line::try_parse_from([&["limits"], arguments].concat()).unwrap();
    line.limits.shown(seed).unwrap()
}

fn phases(arguments: &[&str]) -> Vec<Figures> {
    let mut shown = shown(arguments, 1);
    shown.pop().unwrap().limits.pop().unwrap().phases
}

/// With as many places as workers, Erlang's formula B is the share that the limit refuses. With three times as many
/// the whole capacity is served, and the latency is that of Little's law.
#[test]
fn fixed_limits_have_closed_forms() {
    let small = &phases(&["bulkhead:limit=16", "--scenes", "step"])[0];
    let erlang = (1..=16).fold(1.0, |b, n| 20.0 * b / (f64::from(n) + 20.0 * b));
    assert!((small.refused - erlang).abs() < 0.02, "{erlang}: {small:?}");
    let [before, half, after] = &phases(&["bulkhead:limit=48", "--scenes", "step"])[..] else { panic!() };
    for (phase, latency) in [(before, 0.150), (half, 0.300), (after, 0.150)] {
        let (served, median) = (phase.served.unwrap(), phase.median.unwrap());
        assert!((0.97..1.03).contains(&served), "{phase:?}");
        assert!((median / latency - 1.0).abs() < 0.1, "{phase:?}");
        assert_eq!(phase.dropped, 0.0, "{phase:?}");
    }
}

/// Fast failures raise no limit, and an idle client keeps the initial one.
// G-15, G-16
#[test]
fn failures_and_idleness_raise_no_limit() {
    for word in ["aimd", "vegas", "gradient2"] {
        let idle = &phases(&[word, "--scenes", "idle"])[0];
        assert!(idle.limit.1 <= 20, "{word}: {idle:?}");
        let [before, failing, _] = &phases(&[word, "--scenes", "failures"])[..] else { panic!() };
        assert!(failing.limit.1 <= before.limit.1, "{word}: {before:?} {failing:?}");
    }
}

#[test]
fn all_limits_meet_the_same_calls() {
    let calls = |seed| -> Vec<Vec<u32>> {
        let shown = shown(&["--scenes", "idle"], seed);
        let courses = shown.into_iter().flat_map(|shown| shown.limits);
        courses.map(|course| course.seconds.iter().map(|second| second.calls).collect()).collect()
    };
    let all = calls(1);
    assert_eq!(all.len(), 3);
    assert!(all.windows(2).all(|pair| pair[0] == pair[1]));
    assert_eq!(all, calls(1));
    assert_ne!(all, calls(2));
}
