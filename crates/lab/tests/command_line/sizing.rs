//! `lab capacity`, and the capacity of `lab storm`.

use serde_json::Value;

use super::run;

const QUESTION: [&str; 4] = ["capacity", "50", "--clients", "200"];

/// The whole answer to one question.
#[test]
fn answer_in_words_and_a_table() {
    let (code, text, errors) = run(&QUESTION);
    assert_eq!((code, &*errors), (0, ""));
    let expected = include_str!("sizing.txt");
    assert!(text == expected, "{text}");
}

#[test]
fn answer_as_a_document() {
    let (code, text, errors) = run(&[&QUESTION[..], &["--json"]].concat());
    assert_eq!((code, &*errors), (0, ""));
    let document: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["calls_per_second"], 40.0);
    assert_eq!(document["budgets"][1]["budget"], "default");
    let words = include_str!("sizing.txt").lines().take(4);
    let answer = document["answer"].as_array().unwrap().iter().map(|line| line.as_str().unwrap());
    assert!(words.eq(answer), "{text}");
}

#[test]
fn too_many_calls_are_named() {
    let (_, text, _) = run(&[&QUESTION[..], &["--rate", "0.3"]].concat());
    let line = "\nThe calls alone exceed the capacity. No budget makes up for that: send fewer.\n";
    assert!(text.contains(line), "{text}");
    // A service that is overloaded before the outage has no state to return to.
    let row = text.lines().find(|line| line.starts_with(" default ")).unwrap();
    assert_eq!(row.split_whitespace().nth(7), Some("-"), "{text}");
}

#[test]
fn bad_question_names_the_option() {
    for (arguments, expected) in [
        (
            &["capacity", "9", "--clients", "1"][..],
            "'9' for '<CAPACITY>': must be from 10 to 1000000 requests per second",
        ),
        (&["capacity", "50", "--clients", "0"], "'--clients <NUMBER>': 0 is not in 1..=1000000"),
        (
            &["capacity", "50", "--clients", "200", "--rate", "1"],
            "--rate must be at most 0.5: 200 clients would make 200",
        ),
        (&["capacity", "50", "--clients", "200", "--outage", "0s"], "--outage must be longer than 0 s"),
        (
            &["capacity", "1e6", "--clients", "2", "--outage", "2h"],
            "--outage must be shorter, or more than 4000 million",
        ),
        (
            &["storm", "--capacity", "50"],
            "--capacity must be at least 100, which one worker can do: a longer --service",
        ),
        (&["storm", "--capacity", "0"], "'--capacity <NUMBER>': must be from 0.0001 to 1000000"),
        (&["storm", "--capacity", "500", "--load", "0.5"], "cannot be used with '--load <SHARE>'"),
    ] {
        let (code, _, errors) = run(arguments);
        assert_eq!(code, 2, "{arguments:?}: {errors}");
        assert!(errors.contains(expected), "{arguments:?}: {errors}");
    }
}

#[test]
fn storm_takes_a_capacity() {
    let scene = ["storm", "none", "--clients", "40", "--duration", "60s", "--at", "5s", "--outage", "5s"];
    let (code, text, errors) = run(&[&scene[..], &["--service", "20ms", "--capacity", "50"]].concat());
    assert_eq!((code, &*errors), (0, ""));
    assert!(text.starts_with("40 clients, 40 calls a second; the server can do 50 (a load of 80 %)"), "{text}");
}
