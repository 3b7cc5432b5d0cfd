//! Tests of the fields of a service config, one rule after the other.

mod hedging;
mod methods;
mod retries;
mod throttling;

use std::time::Duration;

use reattempt_grpc::{
    MethodConfig, MethodHedgingPolicy, MethodPolicy, MethodRetryPolicy, RetryThrottling, ServiceConfig,
    ServiceConfigReader,
};

const STRICT: fn() -> ServiceConfigReader = ServiceConfigReader::default;
const LENIENT: fn() -> ServiceConfigReader = ServiceConfig::lenient;

/// Returns a valid policy in which one field's value is replaced.
fn policy(fields: &[(&str, &str)], field: &str, value: &str) -> String {
    let members = fields.iter().map(|(name, own)| format!(r#""{name}": {}"#, if *name == field { value } else { own }));
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

const RETRY: [(&str, &str); 5] = [
    ("maxAttempts", "4"),
    ("initialBackoff", r#""0.1s""#),
    ("maxBackoff", r#""1s""#),
    ("backoffMultiplier", "2"),
    ("retryableStatusCodes", r#"["UNAVAILABLE"]"#),
];

const HEDGING: [(&str, &str); 3] =
    [("maxAttempts", "4"), ("hedgingDelay", r#""0.5s""#), ("nonFatalStatusCodes", r#"["UNAVAILABLE"]"#)];

const THROTTLING: [(&str, &str); 2] = [("maxTokens", "10"), ("tokenRatio", "0.1")];

/// Returns the method of a config with one entry that has this one field, or the single error.
fn method(reader: fn() -> ServiceConfigReader, field: &str, value: &str) -> Result<MethodConfig, (String, String)> {
    let text = format!(r#"{{"methodConfig": [{{"name": [{{}}], "{field}": {value}}}]}}"#);
    Ok(one_error(reader().parse(&text))?.for_method("").unwrap().clone())
}

fn one_error<T>(result: Result<T, reattempt_grpc::ServiceConfigErrors>) -> Result<T, (String, String)> {
    result.map_err(|errors| {
        assert_eq!(errors.iter().count(), 1, "{errors}");
        let error = errors.iter().next().unwrap();
        (error.path().to_owned(), error.reason().to_owned())
    })
}

fn retry(reader: fn() -> ServiceConfigReader, field: &str, value: &str) -> Result<MethodRetryPolicy, (String, String)> {
    match method(reader, "retryPolicy", &policy(&RETRY, field, value))?.policy {
        MethodPolicy::Retry(policy) => Ok(policy),
        other => panic!("{other:?}"),
    }
}

fn hedging(
    reader: fn() -> ServiceConfigReader,
    field: &str,
    value: &str,
) -> Result<MethodHedgingPolicy, (String, String)> {
    match method(reader, "hedgingPolicy", &policy(&HEDGING, field, value))?.policy {
        MethodPolicy::Hedging(policy) => Ok(policy),
        other => panic!("{other:?}"),
    }
}

fn throttling(
    reader: fn() -> ServiceConfigReader,
    field: &str,
    value: &str,
) -> Result<RetryThrottling, (String, String)> {
    let text = format!(r#"{{"retryThrottling": {}}}"#, policy(&THROTTLING, field, value));
    Ok(one_error(reader().parse(&text))?.retry_throttling().unwrap())
}

/// Returns the error text for `value`, which is not `allowed`.
fn refused<T>(path: &str, allowed: &str, value: &str) -> Result<T, (String, String)> {
    Err((path.to_owned(), format!("must be {allowed}, but it is {value}")))
}

const NOT_BELOW: &str = r#"a duration like "1.5s", not below 0"#;
const ABOVE: &str = r#"a duration like "1.5s", above 0"#;
const ATTEMPTS: &str = "a whole number above 1";
const CODE: &str = "a status code other than OK, by its name or number";

// SC-24
#[test]
fn durations_of_go_only_leniently() {
    for (text, nanoseconds) in [(r#"".5s""#, 500_000_000), (r#""1.s""#, 1_000_000_000)] {
        let expected = refused("methodConfig[0].timeout", NOT_BELOW, text);
        assert_eq!(method(STRICT, "timeout", text), expected);
        let read = method(LENIENT, "timeout", text).unwrap().timeout;
        assert_eq!(read, Some(Duration::from_nanos(nanoseconds)));
    }
    let read = retry(LENIENT, "initialBackoff", r#"".01s""#).unwrap();
    assert_eq!(read.initial_backoff(), Duration::from_millis(10));
    let read = hedging(LENIENT, "hedgingDelay", r#"".01s""#).unwrap();
    assert_eq!(read.hedging_delay(), Duration::from_millis(10));
}

// SC-24
#[test]
fn what_no_reader_takes_for_a_duration() {
    let bad = [
        "1",
        "1.5",
        r#""1""#,
        r#""1ms""#,
        r#""1m""#,
        r#"" 1s""#,
        r#""1s ""#,
        r#""""#,
        r#""s""#,
        r#""1.0000000001s""#,
        r#""315576000001s""#,
        r#""NaNs""#,
        "[]",
        "{}",
        "true",
        r#""\ud800s""#,
    ];
    for text in bad {
        for reader in [STRICT, LENIENT] {
            let expected = refused("methodConfig[0].timeout", NOT_BELOW, text);
            assert_eq!(method(reader, "timeout", text), expected);
        }
    }
}
