//! The accepted texts, and the problems that are reported for others.

use reattempt::RetryPolicy;
use reattempt::budget::Budget;
use reattempt::schedule::{Delays, Failure, FailureKind, NextRetry, Random, Schedule};

use reattempt::retry::Limits;
use reattempt_policy_file::reader::{Document, Format, Policy, Problems, parse_word, profile_names};
use std::time::Duration;

fn read(text: &str) -> Result<Vec<Policy>, Problems> {
    Document::read(text, Format::Toml).map(|document| document.policies).map_err(|mistakes| mistakes.problems)
}

struct Highest;

impl Random for Highest {
    fn next_u64(&mut self) -> u64 {
        u64::MAX
    }
}

/// Returns the longest first delays, in milliseconds.
fn longest(policy: &Policy, count: usize) -> Vec<u128> {
    let mut delays = policy.profile.schedule.delays();
    let mut previous = None;
    let delay = |number| {
        let retry = NextRetry::new(number, Failure::new(FailureKind::Server)).after(previous);
        previous = delays.next_delay(&retry, &mut Highest);
        previous.map(|delay| delay.as_millis())
    };
    (0..).map_while(delay).take(count).collect()
}

fn problems(text: &str) -> Vec<String> {
    read(text).unwrap_err().iter().map(|problem| problem.in_file(&"p.toml")).collect()
}

#[test]
fn every_kind_of_schedule_in_a_word() {
    for (word, expected) in [
        ("exponential:jitter=none,base=10ms,factor=3,cap=50ms", &[10, 30, 50, 50][..]),
        ("exponential:jitter=symmetric,randomisation=0.2,cap=100ms", &[120, 120]),
        ("exponential:jitter=symmetric,randomisation=0.2,cap=100ms,clamp_jitter=true", &[100, 100]),
        ("exponential:jitter=equal,cap=none", &[100, 200, 400]),
        ("decorrelated:base=10ms,cap=100ms", &[30, 90, 100]),
        ("constant:base=2s", &[2000, 2000]),
        ("constant:base=2s,jitter=symmetric,randomisation=0.5", &[3000, 3000]),
        ("linear:base=100ms,step=50ms,cap=180ms", &[100, 150, 180, 180]),
        ("truncated:retries=2", &[2000, 3000]),
        ("list:10ms,1s", &[10, 1000]),
        ("list:10ms,1s,repeat_last=true", &[10, 1000, 1000]),
        ("stripe", &[500, 1000, 2000, 4000, 4000]),
        ("cenkalti-quick:max_attempts=3", &[75, 150, 225]),
    ] {
        let policy = parse_word(word).unwrap();
        assert_eq!(policy.name, word);
        let count = expected.len() + usize::from(word == "list:10ms,1s");
        assert_eq!(longest(&policy, count), expected, "{word}");
    }
}

#[test]
fn limits_and_budgets_as_they_are_written() {
    let file = "
        [orders]
        profile = \"stripe\"
        max_attempts = 5
        max_elapsed = \"20s\"
        max_server_delay = \"10s\"
        attempt_timeout = \"2s\"
        repeatable = true
        budget = { ratio = 0.2, capacity = 3 }

        [all-defaults]

        [boundless]
        schedule = \"decorrelated\"
        max_attempts = \"none\"
        max_elapsed = \"none\"
        budget = \"none\"
    ";
    let policies = read(file).unwrap();
    let names: Vec<_> = policies.iter().map(|policy| &*policy.name).collect();
    assert_eq!(names, ["orders", "all-defaults", "boundless"], "in the file's order");
    let [orders, defaults, boundless] = &policies[..] else { panic!() };

    let secs = Duration::from_secs;
    let mut expected = Limits::default();
    expected.max_attempts = 5;
    expected.max_elapsed = Some(secs(20));
    expected.max_server_delay = secs(10);
    assert_eq!(orders.limits(), expected);
    assert_eq!(orders.attempt_timeout, Some(secs(2)));
    assert_eq!((orders.repeatable, defaults.repeatable), (Some(true), None));
    let budget = orders.profile.budget.as_ref().unwrap();
    assert_eq!(budget.balance("a"), 3.0);
    let said = "a retry takes one of 3 tokens; a success gives 0.2, and a second gives 0.01";
    assert_eq!(orders.budget.as_deref(), Some(said));

    assert_eq!(defaults.limits(), Limits::default());
    assert_eq!(longest(defaults, 7), [100, 200, 400, 800, 1600, 3200, 5000]);
    assert!(defaults.profile.budget.is_none());

    assert_eq!((boundless.limits().max_attempts, boundless.limits().max_elapsed), (u32::MAX, None));
    assert!(boundless.profile.budget.as_ref().unwrap().is_full());
    // A client's policy accepts the parsed profile.
    let policy = RetryPolicy::http().profile(orders.profile.clone());
    assert_eq!(policy.limits().max_attempts, 5);
}

/// A capacity without a kind applies to the profile's own kind of budget.
#[test]
fn a_capacity_alone_keeps_the_budgets_kind() {
    let budget = |word: &str| parse_word(word).unwrap().profile.budget.unwrap();
    for (word, tokens, retries) in [
        ("standard:budget=cautious", 10.0, 3),
        ("standard:budget.capacity=2", 2.0, 2),
        ("exponential:budget.capacity=20", 20.0, 3),
        ("aws:budget.capacity=100", 100.0, 20),
        ("standard:budget.ratio=0.1,budget.capacity=2", 2.0, 2),
        ("standard:budget.min_per_second=0.01", 10.0, 10),
    ] {
        let budget = budget(word);
        assert_eq!(budget.balance("a"), tokens, "{word}");
        let failure = Failure::new(FailureKind::Server);
        let take = || budget.acquire_after_failure("a", &failure.into(), Duration::ZERO);
        let sent = (0..100).filter(|_| take().map(|permit| permit.spend()).is_some()).count();
        assert_eq!(sent, retries, "{word}");
    }
    let described = parse_word("standard:budget.capacity=2").unwrap().budget.unwrap();
    assert!(described.contains("one of 2 tokens, which its success gives back"), "{described}");
}

/// All problems are reported, each with its line and its path.
#[test]
fn everything_that_is_wrong_is_said_at_once() {
    let text = r#"
[orders]
schedule = "exponental"
base = "5"
factor = -1
jitter = true
max_attempts = -1
max_elapsed = 20
colour = "red"

[stock]
profile = "strype"
budget = { ratio = 2, capacity = 0.5, min_per_second = -1, size = 1 }

[billing]
profile = "aws"
base = "10ms"
budget = "some"

[list]
schedule = "list"
delays = ["1s", 2]
"#;
    let kinds = "exponential, decorrelated, constant, linear, truncated, list";
    let duration = r#"a duration like "1500ms" or "5s""#;
    let profiles = profile_names();
    assert_eq!(
        problems(text),
        [
            format!(r#"p.toml:3: orders.schedule must be one of {kinds}, but it is "exponental"; did you mean `exponential`?"#),
            format!(r#"p.toml:4: orders.base must be {duration}, but it is "5""#),
            "p.toml:5: orders.factor must be a finite number above 0, but it is -1".into(),
            "p.toml:6: orders.jitter must be a text in quotes, but it is true".into(),
            "p.toml:7: orders.max_attempts must be a whole number from 0 to 4294967295, or \
             \"none\", but it is -1"
                .into(),
            format!(r#"p.toml:8: orders.max_elapsed must be {duration}, or "none", but it is 20"#),
            "p.toml:9: orders.colour is not known here; known: profile, schedule, max_attempts, max_elapsed, \
             max_server_delay, attempt_timeout, repeatable, on_status, on_code, rate_limit, delay_headers, quota_headers, budget, guards, endpoints, base, factor, cap, jitter, \
             randomisation, clamp_jitter"
                .into(),
            format!(r#"p.toml:12: stock.profile must be one of {profiles}, but it is "strype"; did you mean `stripe`?"#),
            "p.toml:13: stock.budget.ratio must be a number from 0.000001 to 1, but it is 2".into(),
            "p.toml:13: stock.budget.capacity must be a number from 1 to 10000000, but it is 0.5"
                .into(),
            "p.toml:13: stock.budget.min_per_second must be a number from 0 to 1000000, but it is -1"
                .into(),
            "p.toml:13: stock.budget.size is not known here; known: ratio, capacity, min_per_second, rate, burst".into(),
            "p.toml:17: billing.base belongs to a `schedule`, and here the profile's is used"
                .into(),
            r#"p.toml:18: billing.budget must be one of default, cautious, ratio, aws_quota, fleet, none, but it is "some""#
                .into(),
            r#"p.toml:22: list.delays must be a list of durations like ["100ms", "5s"], but it is a list"#
                .into(),
        ]
    );
}

#[test]
fn what_is_no_policy_file_at_all() {
    let none = "p.toml: the document has no policy: each is a table, such as [orders]";
    assert_eq!(problems(""), [none]);
    let table = "must be a table, for each policy is one, such as [orders]";
    assert_eq!(problems("base = \"1s\""), [format!("p.toml:1: base {table}")]);
    let broken = problems("[a]\nx = \ny = 1\n[b\n");
    assert!(broken.len() >= 2 && broken[0].starts_with("p.toml:2: "), "{broken:?}");
    for text in ["\u{0}", "[[a]]", "[a]\n[a]", "= 1", "[\"\"]\nbase.x = 1"] {
        assert!(read(text).is_err(), "{text:?}");
    }
}

#[test]
fn words_that_are_none() {
    let error = parse_word("strype").unwrap_err();
    assert!(error.starts_with("\"strype\" is no kind of schedule (exponential, "), "{error}");
    assert!(error.ends_with("; did you mean `stripe`?"), "{error}");
    for (word, expected) in [
        (
            "constant:factor=2",
            "factor is not known here; known: profile, schedule, max_attempts, max_elapsed, max_server_delay, \
             attempt_timeout, repeatable, on_status, on_code, rate_limit, delay_headers, quota_headers, budget, guards, endpoints, base, jitter, randomisation",
        ),
        ("stripe:cap=1s", "cap belongs to a `schedule`, and here the profile's is used"),
        (
            "exponential:factor=0,cap=1ms",
            "factor must be a finite number above 0, but it is 0; \
             cap must be at least the base delay, but it is 1ms",
        ),
        ("stripe:budget.ratio=7", "budget.ratio must be a number from 0.000001 to 1, but it is 7"),
    ] {
        assert_eq!(parse_word(word).unwrap_err(), expected);
    }
    // Characters with a meaning in TOML are plain text in a word.
    for word in ["stripe:a]b=1", "stripe:\"=1", "list:\"", "exponential:base=\"1s\n[x]"] {
        assert!(parse_word(word).is_err(), "{word}");
    }
}
