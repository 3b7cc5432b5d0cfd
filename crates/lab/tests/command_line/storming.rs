//! `lab storm` and `lab budgets`.

use serde_json::Value;

use super::{run, scratch, wrote};

const SMALL: [&str; 9] = ["storm", "--clients", "200", "--duration", "60s", "--at", "5s", "--outage", "5s"];

fn small(more: &[&str]) -> (i32, String, String) {
    run(&[&SMALL, more].concat())
}

/// Returns the words of the row that begins with this policy.
fn row<'a>(text: &'a str, policy: &str) -> Vec<&'a str> {
    let line = text.lines().find(|line| line.trim_start().starts_with(policy)).unwrap();
    line.split_whitespace().collect()
}

#[test]
fn a_storm_in_a_table() {
    let (code, text, errors) = small(&[]);
    assert_eq!((code, &*errors), (0, ""));
    let expected = "200 clients, 200 calls a second; the server can do 300 (a load of 66.7 %), and for \
                    5 s it answers nothing\n";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.lines().count(), 3 + 8, "{text}");
    for (policy, recovers) in
        [("no retry", true), ("three at once", false), ("ours, no budget", false), ("ours ", true)]
    {
        let never = row(&text, policy).join(" ").ends_with("none in 40 s: metastable");
        assert_eq!(never, !recovers, "{policy}: {text}");
    }
    let (_, one, _) = small(&["grpc-throttle"]);
    assert_eq!(one.lines().count(), 3 + 1, "{one}");
    assert_eq!(row(&one, "gRPC throttle"), row(&text, "gRPC throttle"));
}

/// A store that loses its data grants more, and each retry has few messages.
#[test]
fn messages_of_the_shared_store_are_shown() {
    let counts = |more: &[&str]| {
        let options = ["fleet", "--fault", "refuse", "--store-down-at", "6s", "--store-outage", "100ms", "--json"];
        let (code, text, errors) = small(&[&options, more].concat());
        assert_eq!((code, &*errors), (0, ""));
        let document: Value = serde_json::from_str(&text).unwrap();
        let storm = &document["storms"][0];
        let [questions, granted, reports] =
            ["questions", "granted", "reports"].map(|name| storm["store"][name].as_u64().unwrap());
        assert!(granted < questions && reports < questions, "{text}");
        granted
    };
    let more = counts(&["--store-loses-data"]) - counts(&[]);
    assert!((5..=13).contains(&more), "{more}");
    let (_, text, _) = small(&["fleet", "none"]);
    let line = text.lines().last().unwrap();
    assert!(line.starts_with("fleet: the store granted ") && line.ends_with(" messages for each retry"), "{text}");
}

/// A policy in words gives the same figures as the named policy with the same values.
#[test]
fn policies_of_ones_own() {
    let file = scratch("storm.toml");
    std::fs::write(&file, "[small]\nprofile = \"standard\"\nbudget = { ratio = 0.1, capacity = 1 }\n").unwrap();
    let (code, text, errors) =
        small(&["ours", "standard", "for-rate", "standard:attempt_timeout=20ms", "--file", file.to_str().unwrap()]);
    assert_eq!((code, &*errors), (0, ""));
    assert_eq!(row(&text, "ours ")[1..], row(&text, "standard ")[1..]);
    // At one call a second, a fifth of a token is below the least capacity, which is one token.
    assert_eq!(row(&text, "ours, for rate")[3..], row(&text, "small")[1..]);
    assert_ne!(row(&text, "standard:")[1..], row(&text, "standard ")[1..]);
}

/// Calls refused by guards are counted separately, and only if there are guards.
#[test]
fn guards_follow_a_plus() {
    let words = ["unlimited", "unlimited+breaker:open_time=2s+bulkhead:limit=8", "none+vegas:most=9"];
    let (code, text, errors) = small(&[&words[..], &["--rate", "10"]].concat());
    assert_eq!((code, &*errors), (0, ""));
    assert!(text.contains("lost calls  refused calls  attempts/call"), "{text}");
    let file = scratch("guarded.toml");
    std::fs::write(&file, "[none]\nmax_attempts = 1\nguards = [\"vegas:most=9\"]\n").unwrap();
    let (_, of_file, errors) = small(&["--file", file.to_str().unwrap(), "--rate", "10"]);
    assert_eq!(row(&of_file, "none + vegas:most=9")[3..], row(&text, "no retry + vegas")[4..], "{errors}");
    for policy in ["ours, no budget + breaker:open_time=2s + bulkhead:limit=8 ", "no retry + vegas"] {
        assert!(text.contains(policy), "{text}");
    }
    let of_plain = small(&["ours", "--rate", "10"]).1;
    assert!(!of_plain.contains("refused calls"), "{of_plain}");
    let (_, json, _) = small(&["none+breaker", "--rate", "10", "--json"]);
    let document: Value = serde_json::from_str(&json).unwrap();
    let storm = &document["storms"][0];
    assert!(storm["refused"].as_f64().unwrap() > 0.0 && storm["refused"].as_f64() <= storm["lost"].as_f64());
}

/// A client calls ten times a second at random moments. A token comes a third of a second after the one before was
/// taken, and the next call takes it: 3 of 13.
#[test]
fn rate_limit_refuses_in_a_storm() {
    let (code, json, errors) = small(&["none+rate-limit:rate=3,burst=1", "--rate", "10", "--json"]);
    assert_eq!((code, &*errors), (0, ""));
    let document: Value = serde_json::from_str(&json).unwrap();
    let refused = document["storms"][0]["refused"].as_f64().unwrap();
    assert!((refused - 10.0 / 13.0).abs() < 0.005, "{refused}");
}

#[test]
fn a_storm_as_a_document() {
    let arguments = ["--json", "--seed", "3", "--fault", "slow", "--slowdown", "30"];
    let (code, text, _) = small(&arguments);
    assert_eq!(code, 0);
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["seed"], 3);
    assert_eq!(document["outage"]["end"], 10.0);
    // Two workers would be busy all the time, so there are three.
    assert_eq!(document["true_load"], 2.0 / 3.0);
    let naive = &document["storms"][1];
    assert_eq!(naive["policy"], "three at once");
    assert_eq!(naive["metastable"], true);
    assert_eq!(naive["per_second"]["calls"].as_array().unwrap().len(), 60);
    assert_eq!(document["storms"][3]["metastable"], false);
    assert_eq!(text, small(&arguments).1);
}

#[test]
fn a_storm_as_a_picture() {
    let path = scratch("storm.svg");
    let (code, _, errors) = small(&["--plot", path.to_str().unwrap()]);
    assert_eq!((code, errors), (0, wrote(&path)));
    let svg = std::fs::read_to_string(path).unwrap();
    for text in ["AWS quota", "attempts sent", "calls that succeed", "outage", "× the normal load"] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn budgets_in_tables_and_in_a_document() {
    let picture = scratch("budgets.svg");
    let small = [
        "budgets",
        "standard:budget.ratio=0.1,budget.capacity=1",
        "--calls",
        "50",
        "--duration",
        "20s",
        "--failure-rates",
        "0.5,1",
        "--plot",
        picture.to_str().unwrap(),
    ];
    let (code, text, errors) = run(&small);
    assert_eq!((code, errors), (0, wrote(&picture)));
    assert!(text.contains("One client of 50 calls a second: attempts for each call"), "{text}");
    assert!(text.contains("\n50 clients of one call a second each: attempts"), "{text}");
    assert_eq!(row(&text, "budget"), ["budget", "50", "%", "fail", "100", "%", "fail"]);
    assert!(std::fs::read_to_string(&picture).unwrap().contains("ratio for rate"));

    let (_, text, _) = run(&[&small[..], &["--json"]].concat());
    let document: Value = serde_json::from_str(&text).unwrap();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2 * 8 * 2);
    let (first, of_no_budget) = (&cases[0], &cases[1]);
    assert_eq!((&first["clients"], &first["failure_rate"]), (&1.into(), &0.5.into()));
    assert_eq!(of_no_budget["success_later"], 0.0);
    // Three attempts; the last calls of the first seconds end after these seconds.
    let load = of_no_budget["load_at_first"].as_f64().unwrap();
    assert!((2.9..=3.0).contains(&load), "{load}");
}

/// Options are refused if no call could succeed, if nothing could be measured, or if memory would
/// not suffice.
#[test]
fn what_cannot_be_is_refused() {
    for (arguments, text) in [
        ("storm --duration 89s", "error: --duration must reach 20 s beyond the outage"),
        ("storm --outage 10min", "error: --duration must reach 20 s beyond the outage"),
        ("storm --at 1day --outage 1day --timeout 1day", "error: --duration must reach"),
        ("storm --timeout 0s", "error: --timeout must be longer than 0 s"),
        ("storm --service 0s", "error: --service must be longer than 0 s"),
        ("storm --timeout 11ms", "error: --timeout must be at least 12 ms, as long as --service"),
        ("storm --service 1h", "error: --timeout must be at least 1 h, as long as --service"),
        ("storm --slowdown 3", "error: --slowdown needs --fault slow"),
        ("storm --fault slow --slowdown 0", "0 is not in 1..=1000000"),
        ("storm --failure-rate 0.5", "error: --failure-rate needs --fault refuse or lose"),
        ("storm --fault refuse --failure-rate 1.1", "must be from 0 to 1"),
        ("storm --rate 0", "must be from 0.0001 to 1000000"),
        ("storm --rate -1", "must be from 0.0001 to 1000000"),
        ("storm --rate 1000000", "error: more than 4000 million calls: shorten --duration"),
        ("storm --load NaN", "must be from 0.0001 to 2"),
        ("storm --load 2.1", "must be from 0.0001 to 2"),
        ("storm --burst 1s", "error: --burst needs --fault refuse or lose"),
        ("storm --fault lose --burst 0s", "error: --burst must be longer than 0 s"),
        ("storm --drop-every 0s", "error: --drop-every must be longer than 0 s"),
        ("storm --refusal-cost -1", "must be from 0 to 100"),
        ("budgets --burst 0s", "error: --burst must be longer than 0 s"),
        ("storm --queue 24h", "error: more than 50 million requests would be under way"),
        ("storm --duration 500years", "must be at most 24 h"),
        ("storm --duration 99999999999999years", "too large"),
        ("storm --fault none", "[possible values: stall, slow, refuse, lose]"),
        ("storm worse", "\"worse\" is no kind of schedule"),
        ("storm worse", "nor one of none, naive, unlimited, ours, for-rate, grpc-throttle"),
        ("storm constant:base=x", "base must be"),
        ("storm ours+fuse", "\"fuse\" is no kind of guard (breaker, counting, rate-limit, bulkhead, aimd"),
        ("storm ours+", "\"\" is no kind of guard"),
        ("storm ours+vegas:least=9,most=3", "least must be at least 1 and at most the highest limit"),
        ("storm ours+throttle:size=3", "size is not known here"),
        ("storm ours+rate-limit:rate=-1", "from 10⁻⁶ to 10⁹, or infinite"),
        ("storm --file no/such.toml", "error: no/such.toml: cannot be read"),
        ("storm --clients 0", "0 is not in 1..=10000000"),
        ("budgets --failure-rates x", "not a number"),
        ("budgets --duration 5s", "error: --duration must be at least 20 s"),
        ("budgets --calls 1000000 --duration 24h", "error: more than 4000 million calls"),
        ("budgets --calls 0", "0 is not in 1..=1000000"),
    ] {
        let (code, _, errors) = run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!(code, 2, "{arguments}: {errors}");
        assert!(errors.contains(text), "{arguments}: {errors}");
    }
}

/// Simulations with options at their bounds end soon.
#[test]
fn the_edges() {
    for arguments in [
        "storm --clients 1 --rate 0.0001 --duration 24h --at 0s",
        "storm --clients 10 --queue 0s --load 0.0001",
        "storm --clients 10 --service 1ns --timeout 3ms --network 1ns --at 0s --outage 1ns",
        "storm --clients 10 --fault slow --slowdown 1000000 --load 0.9999",
        "storm --clients 10 --fault refuse --failure-rate 0",
        "storm --clients 10 --load 2 --refusal-cost 100 --fault lose --failure-rate 1 --burst 24h",
        "storm --clients 10 --drop-every 1ns",
        "budgets --calls 2 --duration 20s --burst 1ns",
        "budgets --calls 2 --duration 20s --failure-rates 0,1 constant:max_attempts=none,budget=none",
    ] {
        let (code, text, errors) = run(&arguments.split(' ').collect::<Vec<_>>());
        assert_eq!((code, &*errors), (0, ""), "{arguments}");
        assert!(!text.contains("NaN") && !text.contains("inf"), "{arguments}: {text}");
    }
}
