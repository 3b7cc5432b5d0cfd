//! Tests of refused documents, and of the texts of their errors.

use std::error::Error;

use reattempt_grpc::ServiceConfig;

use super::{entries, errors};

// SC-3
#[test]
fn method_needs_a_service() {
    let names = [r#"{"method": "m"}"#, r#"{"service": "", "method": "m"}"#, r#"{"service":null,"method":"m"}"#];
    for name in names {
        assert_eq!(
            errors(&entries(&["[]", &format!("[{{}}, {name}]")])),
            ["methodConfig[1].name[1].service must not be empty where `method` is given"],
            "{name}"
        );
    }
}

// SC-3
#[test]
fn names_that_are_no_names() {
    assert_eq!(
        errors(&entries(&[r#"[{"service": 1, "method": ["m"]}, "a.B", null]"#, "{}", "7"])),
        [
            "methodConfig[0].name[0].service must be a string, but it is 1",
            r#"methodConfig[0].name[0].method must be a string, but it is ["m"]"#,
            r#"methodConfig[0].name[1] must be an object, its keys Unicode text, but it is "a.B""#,
            "methodConfig[0].name[2] must be an object, its keys Unicode text, but it is null",
            "methodConfig[1].name must be a list, but it is {}",
            "methodConfig[2].name must be a list, but it is 7",
        ]
    );
}

// SC-4
#[test]
fn same_name_twice_makes_the_config_invalid() {
    let same = [
        (r#"{"service": "a", "method": "m"}"#, r#"{"method": "m", "service": "a"}"#),
        (r#"{"service": "a"}"#, r#"{"service": "\u0061", "method": null}"#),
        ("{}", r#"{"service": "", "method": ""}"#),
    ];
    for (first, second) in same {
        let across = entries(&["[]", &format!("[{first}]"), &format!(r#"[{{"service":"z"}}, {second}]"#)]);
        assert_eq!(errors(&across), ["methodConfig[2].name[1] must not be the same as methodConfig[1].name[0]"]);
        let within = entries(&[&format!("[{first}, {second}, {second}]")]);
        assert_eq!(
            errors(&within),
            [
                "methodConfig[0].name[1] must not be the same as methodConfig[0].name[0]",
                "methodConfig[0].name[2] must not be the same as methodConfig[0].name[0]",
            ]
        );
    }
}

// SC-5
#[test]
fn one_bad_field_makes_whole_config_invalid() {
    let text = r#"{"methodConfig": [{"name": [{}]}, {"waitForReady": 1}]}"#;
    assert_eq!(errors(text), ["methodConfig[1].waitForReady must be true or false, but it is 1"]);
}

// SC-7
#[test]
fn empty_text_is_invalid() {
    let rows = [
        ("", (1, 0)),
        (" \n ", (2, 1)),
        ("{", (1, 1)),
        ("{\n \"a\": 1,\n}", (3, 1)),
        ("{} {}", (1, 4)),
        ("{'a': 1}", (1, 2)),
    ];
    for (text, position) in rows {
        let errors = ServiceConfig::parse(text).unwrap_err();
        assert_eq!(errors.iter().count(), 1, "{text:?}");
        let error = errors.iter().next().unwrap();
        assert_eq!((error.path(), error.position()), ("", Some(position)), "{text:?}");
        let source = error.source().unwrap().to_string();
        assert!(source.ends_with(&format!("at line {} column {}", position.0, position.1)));
        assert_eq!(errors.to_string(), format!("the document is not JSON: {source}"), "{text:?}");
        assert_eq!(errors.source().unwrap().to_string(), source, "{text:?}");
    }
}

// SC-8
#[test]
fn duplicate_key_is_refused_at_every_level() {
    let text = r#"{
        "methodConfig": [{
            "name": [{"service": "s", "service": "s"}], "timeout": null, "timeout": "1s",
            "retryPolicy": {
                "maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s", "maxAttempts": 2,
                "backoffMultiplier": 1, "retryableStatusCodes": [14]
            }
        }, {
            "hedgingPolicy": {"maxAttempts": 2, "m\u0061xAttempts": 3, "odd key\n": 1, "odd key\n": 1}
        }],
        "retryThrottling": {"tokenRatio": 1, "maxTokens": 1, "tokenRatio": 1},
        "methodConfig": [], "unknown": 1, "unknown": 1, "unknown": 1, "": 1, "": 1
    }"#;
    let paths = [
        "methodConfig",
        "unknown",
        "unknown",
        r#"[""]"#,
        "retryThrottling.tokenRatio",
        "methodConfig[0].timeout",
        "methodConfig[0].retryPolicy.maxAttempts",
        "methodConfig[0].name[0].service",
        "methodConfig[1].hedgingPolicy.maxAttempts",
        r#"methodConfig[1].hedgingPolicy["odd key\n"]"#,
    ];
    assert_eq!(errors(text), paths.map(|path| format!("{path} must not be given twice")));
}

// SC-10
#[test]
fn list_of_choices_is_no_service_config() {
    let reason = "the document must be an object, its keys Unicode text, but it is";
    assert_eq!(errors(r#"[{"serviceConfig": {}}]"#), [format!(r#"{reason} [{{"serviceConfig": {{}}}}]"#)]);
    for text in ["null", "true", "7", r#""{}""#, r#"{"\udead": 1}"#] {
        assert_eq!(errors(text), [format!("{reason} {text}")]);
    }
}

// SC-23
#[test]
fn all_that_is_wrong_is_told_at_once() {
    let text = r#"{
        "retryThrottling": {"maxTokens": 0},
        "methodConfig": [
            {"name": [{}], "timeout": 1, "waitForReady": "true", "retryPolicy": {}},
            17,
            {"name": [{}], "retryPolicy": [], "hedgingPolicy": {
                "maxAttempts": 1, "hedgingDelay": "-1s", "nonFatalStatusCodes": ["NOPE", 14, null]
            }}
        ]
    }"#;
    assert_eq!(
        errors(text),
        [
            "retryThrottling.maxTokens must be a number from 0.001 to 1000, but it is 0",
            "retryThrottling.tokenRatio is required",
            r#"methodConfig[0].timeout must be a duration like "1.5s", not below 0, but it is 1"#,
            r#"methodConfig[0].waitForReady must be true or false, but it is "true""#,
            "methodConfig[0].retryPolicy.maxAttempts is required",
            "methodConfig[0].retryPolicy.initialBackoff is required",
            "methodConfig[0].retryPolicy.maxBackoff is required",
            "methodConfig[0].retryPolicy.backoffMultiplier is required",
            "methodConfig[0].retryPolicy.retryableStatusCodes is required",
            "methodConfig[1] must be an object, its keys Unicode text, but it is 17",
            "methodConfig[2].retryPolicy must be an object, its keys Unicode text, but it is []",
            "methodConfig[2].hedgingPolicy.maxAttempts must be a whole number above 1, but it is 1",
            r#"methodConfig[2].hedgingPolicy.hedgingDelay must be a duration like "1.5s", not below 0, but it is "-1s""#,
            r#"methodConfig[2].hedgingPolicy.nonFatalStatusCodes[0] must be a status code other than OK, by its name or number, but it is "NOPE""#,
            "methodConfig[2].hedgingPolicy.nonFatalStatusCodes[2] must be a status code other than OK, by its name or number, but it is null",
            "methodConfig[2].hedgingPolicy must not be given beside `retryPolicy`",
            "methodConfig[2].name[0] must not be the same as methodConfig[0].name[0]",
        ]
    );
    let all = ServiceConfig::parse(text).unwrap_err();
    assert!(all.source().is_none() && all.iter().all(|error| error.position().is_none()));
    assert_eq!((&all).into_iter().count(), 17);
    assert_eq!(all.into_iter().count(), 17);
}

#[test]
fn error_shows_start_of_value_on_one_line() {
    let text = format!("{{\"methodConfig\": {{\n\t\"é\": \"{}\"}}}}", "x".repeat(1000));
    let shown = format!("{{  \"é\": \"{}…", "x".repeat(55));
    assert_eq!(errors(&text), [format!("methodConfig must be a list, but it is {shown}")]);
    let key = "k".repeat(1000);
    let text = format!(r#"{{"{key}": 1, "{key}": 1}}"#);
    let shown = "k".repeat(63);
    assert_eq!(errors(&text), [format!("[\"{shown}…] must not be given twice")]);
}

/// A document determines the number of its errors, but the length of their text is limited.
#[test]
fn text_of_many_errors_is_short() {
    let entry = r#"[{"service": "a.B"}]"#;
    for (entries_of, written) in [(1, ""), (21, ""), (22, "\nand 1 more")] {
        let text = ServiceConfig::parse(&entries(&vec![entry; entries_of]));
        let text = text.err().map(|errors| errors.to_string()).unwrap_or_default();
        assert_eq!(text.lines().count(), (entries_of - 1).min(21), "{text}");
        assert!(text.ends_with(written), "{text}");
    }
    let errors = ServiceConfig::parse(&entries(&vec![entry; 10_000])).unwrap_err();
    assert_eq!(errors.iter().count(), 9_999);
    assert!(errors.to_string().ends_with("\nand 9979 more"), "{errors}");
    assert!(errors.to_string().len() < 4_000 && format!("{errors:?}").len() < 8_000);
}
