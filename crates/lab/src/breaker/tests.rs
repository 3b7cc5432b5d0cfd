//! The states of a breaker compared with its rules, for scripts whose course is certain.

use clap::Parser;

use super::*;

#[derive(Debug, Parser)]
struct Line {
    #[command(flatten)]
    breaker: Breaker,
}

fn shown(arguments: &[&str]) -> Vec<Shown> {
    let line = Line::try_parse_from([&["breaker"], arguments].concat()).unwrap();
    line.breaker.courses(1).unwrap()
}

fn states(shown: &Shown) -> Vec<&str> {
    shown.stretches.iter().map(|stretch| &*stretch.state).collect()
}

/// Five failures in a row open the breaker; failed probes double the open time, and the first success closes it.
#[test]
fn outage_opens_and_probes_double_the_time() {
    let errors = ["--errors", "0s=0,60s=1,260s=0"];
    let word = "breaker:consecutive_failures=5,min_failing_time=0s,first_open_time=10s,open_time=10s,spread=0,max_open_time=1min";
    let [shown] = &shown(&[&[word][..], &errors].concat())[..] else { panic!() };
    let once = ["open", "half-open"];
    let expected = [&["closed"], &once.repeat(6)[..], &["closed"]].concat();
    assert_eq!(states(shown), expected);
    assert_eq!(shown.stretches[0].failed, 5);
    let open = shown.stretches.iter().filter(|stretch| stretch.state == "open");
    for (stretch, seconds) in open.zip([10.0, 20.0, 40.0, 60.0, 60.0, 60.0]) {
        let lasts = stretch.to - stretch.from;
        // It ends at the first call after the open time.
        assert!((seconds..seconds + 1.0).contains(&lasts), "{seconds}: {stretch:?}");
        assert_eq!(stretch.refused, stretch.calls, "{stretch:?}");
    }
}

/// Failures of a few percent never open it; without a rule for consecutive failures, 60 % do at the 20th call or later.
#[test]
fn rate_of_failures_decides() {
    let [healthy] = &shown(&["breaker", "--errors", "0s=0.05"])[..] else { panic!() };
    assert_eq!(states(healthy), ["closed"]);
    assert_eq!(healthy.stretches[0].refused, 0);
    let [bad] = &shown(&["breaker:consecutive_failures=0", "--errors", "0s=0.6"])[..] else { panic!() };
    assert_eq!(states(bad)[..2], ["closed", "open"]);
    assert!(bad.stretches[0].calls >= 20, "{bad:?}");
}

/// All breakers see the same calls, which depend on the seed.
#[test]
fn breakers_meet_the_same_calls() {
    let calls = |shown: &Shown| -> Vec<_> { shown.per_second.iter().map(|s| s.calls).collect() };
    let both = shown(&[]);
    assert_eq!(both.len(), 2);
    assert_eq!(calls(&both[0]), calls(&both[1]));
    let line = Line::try_parse_from(["breaker"]).unwrap();
    assert_ne!(calls(&line.breaker.courses(2).unwrap()[0]), calls(&both[0]));
}
