//! `lab breaker` and `lab limits`.

use super::{run, scratch, wrote};

#[test]
fn states_of_a_breaker_over_time() {
    let picture = scratch("breaker.svg");
    let script = ["breaker", "--errors", "0s=0,30s=1,2min=0", "--duration", "3min"];
    let (code, text, errors) = run(&[&script[..], &["--plot", picture.to_str().unwrap()]].concat());
    assert_eq!((code, errors), (0, wrote(&picture)));
    assert!(text.starts_with("20 calls a second. Of the calls that are sent, 0 % fail from 0 s on"));
    let line = text.lines().find(|line| line.trim_start().starts_with("closed")).unwrap();
    let words: Vec<_> = line.split_whitespace().collect();
    assert_eq!((words[0], words[1], words[2], words[3]), ("closed", "0", "s", "32.6"), "{text}");
    assert!(text.contains("half-open") && text.contains("counting"), "{text}");
    let svg = std::fs::read_to_string(picture).unwrap();
    for text in ["open", "half-open", "calls refused", "share of those sent that fails"] {
        assert!(svg.contains(text), "{text}");
    }
    let (_, json, _) = run(&[&script[..], &["counting:open_time=5s", "--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let breaker = &document["breakers"][0];
    assert_eq!(breaker["breaker"], "counting:open_time=5s");
    assert_eq!(breaker["stretches"][1]["state"], "open");
    assert_eq!(breaker["per_second"].as_array().unwrap().len(), 180);
}

#[test]
fn breakers_that_cannot_be() {
    for (arguments, text) in [
        ("breaker vegas", "must be breaker or counting"),
        ("breaker fuse", "\"fuse\" is no kind of guard (breaker, counting, rate-limit, bulkhead"),
        ("breaker breaker:failure_ratio=2", "failure_ratio must be a number above 0 and at most 1, but it is 2"),
        ("breaker breaker:min_calls=0", "min_calls must be at least 1, but it is 0"),
        ("breaker counting:failure_ratio=0.3", "failure_ratio is not known here"),
        ("breaker breaker:open_time=5", "open_time must be a duration"),
        ("breaker --errors 1min=0.5,30s=0", "error: --errors must be in the order of time"),
        ("breaker --errors 1min", "must be a time and a share"),
        ("breaker --rate 1000000", "error: more than 20 million calls"),
    ] {
        let (code, _, errors) = run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 2, "{arguments}: {errors}");
        assert!(errors.contains(text), "{arguments}: {errors}");
    }
}

#[test]
fn limits_in_a_table_and_a_document() {
    let picture = scratch("limits.svg");
    let idle = ["limits", "vegas", "bulkhead:limit=16", "--scenes", "idle"];
    let (code, text, errors) = run(&[&idle[..], &["--plot", picture.to_str().unwrap()]].concat());
    assert_eq!((code, errors), (0, wrote(&picture)));
    assert!(text.starts_with(" idle client"), "{text}");
    assert_eq!(text.lines().count(), 1 + 2 * 2, "{text}");
    let svg = std::fs::read_to_string(picture).unwrap();
    for text in ["capacity", "served a second", "median latency, s", "bulkhead:limit=16"] {
        assert!(svg.contains(text), "{text}");
    }
    let (_, json, _) = run(&[&idle[..], &["--json"]].concat());
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    let fixed = &document["scenes"][0]["limits"][1];
    assert_eq!((&fixed["limit"], &fixed["phases"][0]["refused"]), (&"bulkhead:limit=16".into(), &0.0.into()));
    for (arguments, text) in [
        ("limits breaker", "must be aimd, vegas, gradient2 or bulkhead"),
        ("limits aimd:backoff=2", "backoff must be from 0.5 to below 1, but it is 2"),
        ("limits --scenes flood", "[possible values: step, leak, failures, bimodal, idle]"),
        ("limits --timeout 0s", "error: --timeout must be longer than 0 s"),
    ] {
        let (code, _, errors) = run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 2, "{arguments}: {errors}");
        assert!(errors.contains(text), "{arguments}: {errors}");
    }
}
