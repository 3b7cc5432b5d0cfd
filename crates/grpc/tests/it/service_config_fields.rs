//! The fields of a service config, one rule after the other.

use std::time::Duration;

use reattempt_grpc::{
    Code, CodeSet, HedgingPolicy, MethodConfig, MethodPolicy, RetryPolicy, ServiceConfig,
    ServiceConfigReader, Throttling,
};

const STRICT: fn() -> ServiceConfigReader = ServiceConfigReader::default;
const LENIENT: fn() -> ServiceConfigReader = ServiceConfig::lenient;

/// A policy that obeys the rules, with other text in place of one field's value.
fn policy(fields: &[(&str, &str)], field: &str, value: &str) -> String {
    let members = fields
        .iter()
        .map(|(name, own)| format!(r#""{name}": {}"#, if *name == field { value } else { own }));
    format!("{{{}}}", members.collect::<Vec<_>>().join(", "))
}

const RETRY: [(&str, &str); 5] = [
    ("maxAttempts", "4"),
    ("initialBackoff", r#""0.1s""#),
    ("maxBackoff", r#""1s""#),
    ("backoffMultiplier", "2"),
    ("retryableStatusCodes", r#"["UNAVAILABLE"]"#),
];

const HEDGING: [(&str, &str); 3] = [
    ("maxAttempts", "4"),
    ("hedgingDelay", r#""0.5s""#),
    ("nonFatalStatusCodes", r#"["UNAVAILABLE"]"#),
];

const THROTTLING: [(&str, &str); 2] = [("maxTokens", "10"), ("tokenRatio", "0.1")];

/// The method of a config with one entry that has this one field, or the one error.
fn method(
    reader: fn() -> ServiceConfigReader,
    field: &str,
    value: &str,
) -> Result<MethodConfig, (String, String)> {
    let text = format!(r#"{{"methodConfig": [{{"name": [{{}}], "{field}": {value}}}]}}"#);
    Ok(one_error(reader().parse(&text))?.for_method("").unwrap().clone())
}

fn one_error<T>(
    result: Result<T, reattempt_grpc::ServiceConfigErrors>,
) -> Result<T, (String, String)> {
    result.map_err(|errors| {
        assert_eq!(errors.iter().count(), 1, "{errors}");
        let error = errors.iter().next().unwrap();
        (error.path().to_owned(), error.reason().to_owned())
    })
}

fn retry(
    reader: fn() -> ServiceConfigReader,
    field: &str,
    value: &str,
) -> Result<RetryPolicy, (String, String)> {
    match method(reader, "retryPolicy", &policy(&RETRY, field, value))?.policy {
        MethodPolicy::Retry(policy) => Ok(policy),
        other => panic!("{other:?}"),
    }
}

fn hedging(
    reader: fn() -> ServiceConfigReader,
    field: &str,
    value: &str,
) -> Result<HedgingPolicy, (String, String)> {
    match method(reader, "hedgingPolicy", &policy(&HEDGING, field, value))?.policy {
        MethodPolicy::Hedging(policy) => Ok(policy),
        other => panic!("{other:?}"),
    }
}

fn throttling(
    reader: fn() -> ServiceConfigReader,
    field: &str,
    value: &str,
) -> Result<Throttling, (String, String)> {
    let text = format!(r#"{{"retryThrottling": {}}}"#, policy(&THROTTLING, field, value));
    Ok(one_error(reader().parse(&text))?.retry_throttling().unwrap())
}

/// The error text for `value`, which is not `allowed`.
fn refused<T>(path: &str, allowed: &str, value: &str) -> Result<T, (String, String)> {
    Err((path.to_owned(), format!("must be {allowed}, but it is {value}")))
}

const NOT_BELOW: &str = r#"a duration like "1.5s", not below 0"#;
const ABOVE: &str = r#"a duration like "1.5s", above 0"#;
const ATTEMPTS: &str = "a whole number above 1";
const CODE: &str = "a status code other than OK, by its name or number";

// DL-7, SC-11
#[test]
fn wait_for_ready_is_true_or_false() {
    for (text, expected) in [("true", Some(true)), ("false", Some(false)), ("null", None)] {
        assert_eq!(method(STRICT, "waitForReady", text).unwrap().wait_for_ready, expected);
    }
    for text in [r#""true""#, "1", "0", "[]", "{}", r#""""#] {
        for reader in [STRICT, LENIENT] {
            let expected = refused("methodConfig[0].waitForReady", "true or false", text);
            assert_eq!(method(reader, "waitForReady", text), expected);
        }
    }
}

// SC-12
#[test]
fn timeout_is_a_duration_and_may_be_0() {
    let rows = [
        (r#""1s""#, Some(Duration::from_secs(1))),
        (r#""0.5s""#, Some(Duration::from_millis(500))),
        (r#""0s""#, Some(Duration::ZERO)),
        (r#""1\u0073""#, Some(Duration::from_secs(1))),
        ("null", None),
    ];
    for (text, expected) in rows {
        assert_eq!(method(STRICT, "timeout", text).unwrap().timeout, expected, "{text}");
    }
}

// DL-1
#[test]
fn negative_timeout_is_refused() {
    for reader in [STRICT, LENIENT] {
        let expected = refused("methodConfig[0].timeout", NOT_BELOW, r#""-1s""#);
        assert_eq!(method(reader, "timeout", r#""-1s""#), expected);
    }
}

// SC-13
#[test]
fn message_limits_are_unsigned_and_may_be_0() {
    let read = |text: &str| {
        let request = method(STRICT, "maxRequestMessageBytes", text)?;
        let response = method(STRICT, "maxResponseMessageBytes", text)?;
        assert_eq!(response.max_request_message_bytes, None);
        assert_eq!(request.max_response_message_bytes, None);
        assert_eq!(request.max_request_message_bytes, response.max_response_message_bytes);
        Ok(request.max_request_message_bytes)
    };
    for (text, expected) in [("0", 0), ("7", 7), ("7.0", 7), ("4294967295", u32::MAX), ("-0", 0)] {
        assert_eq!(read(text), Ok(Some(expected)), "{text}");
    }
    let allowed = "a whole number from 0 to 4294967295";
    for text in ["-1", "1.5", "4294967296", "1e10", r#""7""#, "true", "[]", "1e-400"] {
        let path = "methodConfig[0].maxRequestMessageBytes";
        assert_eq!(read(text), refused(path, allowed, text), "{text}");
        let path = "methodConfig[0].maxResponseMessageBytes";
        assert_eq!(method(STRICT, "maxResponseMessageBytes", text), refused(path, allowed, text));
    }
    let quoted = method(LENIENT, "maxRequestMessageBytes", r#""7""#).unwrap();
    assert_eq!(quoted.max_request_message_bytes, Some(7));
}

// CALL-1, SC-14
#[test]
fn both_policies_are_an_error_none_is_not() {
    let (retry, hedging) = (policy(&RETRY, "", ""), policy(&HEDGING, "", ""));
    let both =
        format!(r#"{{"methodConfig": [{{"hedgingPolicy": {hedging}, "retryPolicy": {retry}}}]}}"#);
    for reader in [STRICT, LENIENT] {
        let expected = (
            "methodConfig[0].hedgingPolicy".to_owned(),
            "must not be given beside `retryPolicy`".to_owned(),
        );
        assert_eq!(one_error(reader().parse(&both)), Err(expected));
    }
    let null = both.replace(&hedging, "null");
    assert!(ServiceConfig::parse(&null).is_ok(), "null is no policy");
    assert_eq!(method(STRICT, "timeout", "null").unwrap().policy, MethodPolicy::None);
}

#[test]
fn a_whole_retry_policy() {
    let read = retry(STRICT, "", "").unwrap();
    assert_eq!(read.max_attempts(), 4);
    assert_eq!(read.initial_backoff(), Duration::from_millis(100));
    assert_eq!(read.max_backoff(), Duration::from_secs(1));
    assert_eq!(read.backoff_multiplier(), 2.0);
    assert_eq!(read.retryable_codes(), CodeSet::from_iter([Code::Unavailable]));
}

// CALL-7, SC-15
#[test]
fn max_attempts_is_a_whole_number_above_1() {
    let rows = [("2", 2), ("4.0", 4), ("5e0", 5), ("0.3e1", 3), ("6", 6), ("4294967295", u32::MAX)];
    for (text, expected) in rows {
        assert_eq!(retry(STRICT, "maxAttempts", text).unwrap().max_attempts(), expected, "{text}");
        let hedging = hedging(STRICT, "maxAttempts", text).unwrap();
        assert_eq!(hedging.max_attempts(), expected, "{text}");
    }
    let bad =
        ["1", "0", "-2", "2.5", "1.99", "true", "[2]", "{}", r#""""#, r#""two""#, "2.0000000001"];
    for text in bad {
        let path = "methodConfig[0].retryPolicy.maxAttempts";
        assert_eq!(retry(STRICT, "maxAttempts", text), refused(path, ATTEMPTS, text));
        let path = "methodConfig[0].hedgingPolicy.maxAttempts";
        assert_eq!(hedging(STRICT, "maxAttempts", text), refused(path, ATTEMPTS, text));
    }
}

// CALL-8
#[test]
fn many_attempts_are_left_to_the_cap() {
    for text in ["4294967296", "1e30", "1e999999999999", &"9".repeat(1000)] {
        assert_eq!(retry(STRICT, "maxAttempts", text).unwrap().max_attempts(), u32::MAX);
    }
}

// SC-15
#[test]
fn numbers_in_quotes_only_leniently() {
    for text in [r#""4""#, r#""4.0""#, r#""\u0034""#] {
        let path = "methodConfig[0].retryPolicy.maxAttempts";
        assert_eq!(retry(STRICT, "maxAttempts", text), refused(path, ATTEMPTS, text));
        assert_eq!(retry(LENIENT, "maxAttempts", text).unwrap().max_attempts(), 4, "{text}");
    }
    let multiplier = retry(LENIENT, "backoffMultiplier", r#""1.5""#).unwrap();
    assert_eq!(multiplier.backoff_multiplier(), 1.5);
    let ratio = throttling(LENIENT, "tokenRatio", r#""0.5466""#).unwrap();
    assert_eq!(ratio.token_ratio_thousandths(), 546);
    let never =
        ["", " 4", "4 ", "+4", "04", "4.", ".4e1", "0x4", "four", "null", "[4]", "\\\"4\\\""];
    for text in never {
        let text = format!(r#""{text}""#);
        let path = "methodConfig[0].retryPolicy.maxAttempts";
        assert_eq!(retry(LENIENT, "maxAttempts", &text), refused(path, ATTEMPTS, &text));
    }
}

// SC-16
#[test]
fn both_backoffs_are_above_0() {
    for field in ["initialBackoff", "maxBackoff"] {
        let path = format!("methodConfig[0].retryPolicy.{field}");
        for text in [r#""0s""#, r#""-0s""#, r#""0.000s""#, r#""-1s""#, r#""""#, "1", "true"] {
            assert_eq!(retry(STRICT, field, text), refused(&path, ABOVE, text));
        }
        assert!(retry(STRICT, field, r#""0.000000001s""#).is_ok());
    }
}

// SC-17
#[test]
fn multiplier_is_a_number_above_0() {
    let rows = [("1", 1.0), ("0.5", 0.5), ("1.6", 1.6), ("1e-3", 0.001), ("1e300", 1e300)];
    for (text, expected) in rows {
        let read = retry(STRICT, "backoffMultiplier", text).unwrap();
        assert_eq!(read.backoff_multiplier(), expected, "{text}");
    }
    let path = "methodConfig[0].retryPolicy.backoffMultiplier";
    for text in ["0", "0.0", "-0", "-1", "1e999", "1e-999", r#""2""#, "false", "[]"] {
        let expected = refused(path, "a number above 0", text);
        assert_eq!(retry(STRICT, "backoffMultiplier", text), expected);
    }
}

// SC-18
#[test]
fn codes_are_names_in_any_case_or_numbers() {
    let names = (1..=16).map(Code::from_number).map(|code| code.to_string());
    let all: CodeSet = (1..=16).map(Code::from_number).collect();
    let upper = format!("{:?}", names.clone().collect::<Vec<_>>());
    let numbers = format!("{:?}", (1..=16).collect::<Vec<_>>());
    for text in [&upper, &upper.to_lowercase(), &numbers] {
        let read = retry(STRICT, "retryableStatusCodes", text).unwrap();
        assert_eq!(read.retryable_codes(), all, "{text}");
    }
    let text = r#"["Unavailable", 10, 13.0, "data_loss"]"#;
    let read = retry(STRICT, "retryableStatusCodes", text).unwrap().retryable_codes();
    let expected = [Code::Aborted, Code::Internal, Code::Unavailable, Code::DataLoss];
    assert!(read.iter().eq(expected), "{read:?}");
}

// SC-18
#[test]
fn empty_or_missing_codes_are_refused() {
    let path = "methodConfig[0].retryPolicy.retryableStatusCodes";
    let field = "retryableStatusCodes";
    for reader in [STRICT, LENIENT] {
        assert_eq!(retry(reader, field, "[]"), refused(path, "a list of at least one code", "[]"));
        for text in [r#""UNAVAILABLE""#, "14", "{}", r#"{"14": 14}"#] {
            assert_eq!(retry(reader, field, text), refused(path, "a list", text));
        }
        let required = Err((path.to_owned(), "is required".to_owned()));
        assert_eq!(retry(reader, field, "null"), required);
    }
}

// RET-5, SC-18
#[test]
fn what_is_no_code_is_refused() {
    let path = "methodConfig[0].retryPolicy.retryableStatusCodes[1]";
    let bad = [
        "17",
        "-1",
        "14.5",
        "1e99",
        "300",
        r#""17""#,
        r#""14""#,
        r#""""#,
        r#"" UNAVAILABLE""#,
        r#""Unavailable!""#,
        r#""UNKNOWN_CODE""#,
        "true",
        "null",
        "[14]",
        "{}",
    ];
    for text in bad {
        for reader in [STRICT, LENIENT] {
            let list = format!("[14, {text}]");
            let expected = refused(path, CODE, text);
            assert_eq!(retry(reader, "retryableStatusCodes", &list), expected);
        }
    }
}

// SC-19
#[test]
fn cancelled_has_two_l_and_ok_is_refused() {
    let codes = |text: &str| Ok(retry(STRICT, "retryableStatusCodes", text)?.retryable_codes());
    assert_eq!(codes(r#"["CANCELLED"]"#), Ok(CodeSet::from_iter([Code::Cancelled])));
    let path = "methodConfig[0].retryPolicy.retryableStatusCodes[0]";
    for text in [r#""CANCELED""#, r#""OK""#, r#""ok""#, "0", "0.0", "-0"] {
        assert_eq!(codes(&format!("[{text}]")), refused(path, CODE, text));
    }
}

// SC-20
#[test]
fn code_may_be_listed_twice() {
    let read = retry(STRICT, "retryableStatusCodes", r#"["UNAVAILABLE", 14, "unavailable"]"#);
    assert_eq!(read.unwrap().retryable_codes(), CodeSet::from_iter([Code::Unavailable]));
}

// BK-5, SC-21
#[test]
fn first_backoff_may_exceed_the_cap() {
    let read = retry(STRICT, "initialBackoff", r#""9s""#).unwrap();
    assert!(read.initial_backoff() > read.max_backoff());
    assert!(retry(STRICT, "backoffMultiplier", "0.001").is_ok());
}

// HG-13, SC-22
#[test]
fn hedging_policy_needs_only_its_attempts() {
    let read = hedging(STRICT, "", "").unwrap();
    assert_eq!((read.max_attempts(), read.hedging_delay()), (4, Duration::from_millis(500)));
    assert_eq!(read.non_fatal_codes(), CodeSet::from_iter([Code::Unavailable]));
    for value in [r#"{"maxAttempts": 3}"#, r#"{"maxAttempts": 3, "nonFatalStatusCodes": []}"#] {
        let MethodPolicy::Hedging(read) = method(STRICT, "hedgingPolicy", value).unwrap().policy
        else {
            panic!("{value}")
        };
        assert_eq!((read.max_attempts(), read.hedging_delay()), (3, Duration::ZERO));
        assert!(read.non_fatal_codes().is_empty());
    }
    let missing =
        ("methodConfig[0].hedgingPolicy.maxAttempts".to_owned(), "is required".to_owned());
    assert_eq!(method(STRICT, "hedgingPolicy", "{}"), Err(missing));
}

// HG-13
#[test]
fn negative_delay_and_bad_codes_are_refused() {
    let path = "methodConfig[0].hedgingPolicy.hedgingDelay";
    for text in [r#""-0.1s""#, r#""1ms""#, "0.5"] {
        assert_eq!(hedging(STRICT, "hedgingDelay", text), refused(path, NOT_BELOW, text));
    }
    assert_eq!(hedging(STRICT, "hedgingDelay", r#""0s""#).unwrap().hedging_delay(), Duration::ZERO);
    let path = "methodConfig[0].hedgingPolicy.nonFatalStatusCodes";
    let text = r#""ABORTED""#;
    assert_eq!(hedging(STRICT, "nonFatalStatusCodes", text), refused(path, "a list", text));
    let path = format!("{path}[0]");
    assert_eq!(hedging(STRICT, "nonFatalStatusCodes", "[0]"), refused(&path, CODE, "0"));
}

// THR-9, SC-22
#[test]
fn throttle_has_bounds_and_three_decimals() {
    let max = |text: &str| Ok(throttling(STRICT, "maxTokens", text)?.max_tokens_thousandths());
    let rows = [
        ("1000", 1_000_000),
        ("1000.0", 1_000_000),
        ("1e3", 1_000_000),
        ("999.9999", 999_999),
        ("2.5", 2_500),
        ("0.29", 290),
        ("0.001", 1),
        ("0.0019", 1),
    ];
    for (text, expected) in rows {
        assert_eq!(max(text), Ok(expected), "{text}");
    }
    for text in ["0", "-1", "1000.0001", "1001", "1e99", "0.0009", r#""10""#, "true", "[10]"] {
        let allowed = "a number from 0.001 to 1000";
        assert_eq!(max(text), refused("retryThrottling.maxTokens", allowed, text));
    }

    let ratio = |text: &str| Ok(throttling(STRICT, "tokenRatio", text)?.token_ratio_thousandths());
    let rows = [
        ("0.5466", 546),
        ("0.5469999999999999999999", 546),
        ("0.29", 290),
        ("0.57", 570),
        ("1", 1_000),
        ("1.001", 1_001),
        ("5e-1", 500),
        ("0.001", 1),
        ("20000", 20_000_000),
        ("1e300", u32::MAX),
    ];
    for (text, expected) in rows {
        assert_eq!(ratio(text), Ok(expected), "{text}");
    }
    for text in ["0", "-0.1", "0.0009", "1e-9", r#""0.1""#, "false", "{}"] {
        let allowed = "a number of at least 0.001";
        assert_eq!(ratio(text), refused("retryThrottling.tokenRatio", allowed, text));
    }
}

// SC-23
#[test]
fn missing_throttle_field_is_named() {
    let errors = ServiceConfig::parse(r#"{"retryThrottling": {}}"#).unwrap_err();
    assert_eq!(
        errors.to_string(),
        "retryThrottling.maxTokens is required\nretryThrottling.tokenRatio is required"
    );
    let path = "retryThrottling";
    let object = "an object, its keys Unicode text";
    assert_eq!(
        one_error(ServiceConfig::parse(r#"{"retryThrottling": [1]}"#)),
        refused(path, object, "[1]")
    );
}

// THR-9
#[test]
fn settings_in_code_have_same_bounds() {
    let read = |max, ratio| {
        Throttling::new(max, ratio)
            .map(|read| (read.max_tokens_thousandths(), read.token_ratio_thousandths()))
            .map_err(|error| error.to_string())
    };
    assert_eq!(read(10.0, 0.1), Ok((10_000, 100)));
    assert_eq!(read(0.29, 0.57), Ok((290, 570)), "a product of floats gives 569");
    assert_eq!(read(1000.0, 0.5466), Ok((1_000_000, 546)));
    assert_eq!(read(0.001, 1e300), Ok((1, u32::MAX)));
    for max in [0.0, -1.0, 0.0009, 1000.0001, f64::NAN, f64::INFINITY] {
        let text = format!("`max_tokens` must be a number from 0.001 to 1000, but it is {max}");
        assert_eq!(read(max, 0.1), Err(text));
    }
    for ratio in [0.0, -0.1, 0.0009, f64::NAN, f64::NEG_INFINITY] {
        let text = format!("`token_ratio` must be a number of at least 0.001, but it is {ratio}");
        assert_eq!(read(10.0, ratio), Err(text));
    }
    let default = Throttling::default();
    assert_eq!(default, Throttling::new(10.0, 0.1).unwrap());
}

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

// DL-6
#[test]
fn attempt_timeout_does_not_replace_codes() {
    let text = r#"{"methodConfig": [{"retryPolicy": {
        "maxAttempts": 2, "initialBackoff": "1s", "maxBackoff": "1s", "backoffMultiplier": 1,
        "perAttemptRecvTimeout": "1s", "retryableStatusCodes": []
    }}]}"#;
    let path = "methodConfig[0].retryPolicy.retryableStatusCodes";
    let expected = refused(path, "a list of at least one code", "[]");
    assert_eq!(one_error(ServiceConfig::parse(text)), expected);
}
