//! `lab storm` and `lab budgets` as their users meet them.

#![allow(missing_docs, clippy::unwrap_used, reason = "a test fails by panicking")]

use std::process::Command;

fn run(arguments: &str) -> (i32, String, String) {
    let arguments = arguments.split_whitespace();
    let output = Command::new(env!("CARGO_BIN_EXE_lab")).args(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

const SMALL: &str = "storm --clients 200 --duration 60s --at 5s --outage 5s";

fn small(more: &str) -> (i32, String, String) {
    run(&format!("{SMALL} {more}"))
}

#[test]
fn a_storm_in_a_table() {
    let (code, text, errors) = small("");
    let (_, one, _) = small("--policies grpc");
    assert_eq!(one.lines().count(), 4, "{one}");
    let row = |text: &str| {
        let line = text.lines().find(|line| line.contains("gRPC")).unwrap();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    assert_eq!(row(&text), row(&one));
    assert_eq!((code, &*errors), (0, ""));
    let expected = "200 clients, 200 calls a second; the server can do 300, and for 5.00 s it \
                    answers nothing\n";
    assert!(text.starts_with(expected), "{text}");
    assert_eq!(text.matches("never: metastable").count(), 3, "{text}");
}

#[test]
fn a_storm_as_a_document() {
    let (code, text, _) = small("--json --seed 3 --fault slow --slowdown 30");
    assert_eq!(code, 0);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["seed"], 3);
    assert_eq!(document["outage"]["end"], 10.0);
    let naive = &document["storms"][1];
    assert_eq!(naive["policy"], "three at once");
    assert_eq!(naive["metastable"], true);
    assert_eq!(naive["per_second"]["calls"].as_array().unwrap().len(), 60);
    assert_eq!(document["storms"][3]["metastable"], false);
    assert_eq!(small("--json --seed 3").1, small("--json --seed 3").1);
}

#[test]
fn a_storm_as_a_picture() {
    let path = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("storm.svg");
    let (code, _, errors) = small(&format!("--plot {}", path.to_str().unwrap()));
    assert_eq!((code, &*errors), (0, ""));
    let svg = std::fs::read_to_string(path).unwrap();
    for text in ["AWS quota", "attempts sent", "calls that succeed", "of the normal load"] {
        assert!(svg.contains(text), "{text}");
    }
}

#[test]
fn budgets_in_tables_and_in_a_document() {
    let small = "budgets --calls 50 --duration 20s --failure-rates 0.5,1";
    let (code, text, errors) = run(small);
    assert_eq!((code, &*errors), (0, ""));
    assert!(text.contains("budget            50 % fail   100 % fail\n"), "{text}");
    let (_, text, _) = run(&format!("{small} --json"));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let cases = document["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 2 * 6 * 2);
    let (first, of_no_budget) = (&cases[0], &cases[1]);
    assert_eq!((&first["clients"], &first["failure_rate"]), (&1.into(), &0.5.into()));
    // Three attempts; the last calls of the first seconds are not over by their end.
    let load = of_no_budget["load_at_first"].as_f64().unwrap();
    assert!((2.9..=3.0).contains(&load), "{load}");
    assert_eq!(of_no_budget["success_later"], 0.0);
}

#[test]
fn what_cannot_be_is_refused() {
    for (arguments, text) in [
        ("storm --duration 75s", "error: --duration must reach 20.0 s beyond the outage"),
        ("storm --timeout 0s", "error: --timeout must be longer than 0 s"),
        ("storm --rate 0", "must be above 0 and at most 1000000"),
        ("storm --load NaN", "must be above 0 and at most 1000000"),
        ("storm --failure-rate 1.1", "must be from 0 to 1"),
        ("storm --fault none", "[possible values: stall, slow, refuse]"),
        ("storm --policies worse", "[possible values: none, naive, unlimited, ours, for-rate,"),
        ("storm --clients 0", "0 is not in 1..=10000000"),
        ("budgets --failure-rates x", "not a number"),
        ("budgets --duration 5s", "error: --duration must be at least 20 s"),
    ] {
        let (code, _, errors) = run(arguments);
        assert_eq!(code, 2, "{arguments}: {errors}");
        assert!(errors.contains(text), "{arguments}: {errors}");
    }
}
