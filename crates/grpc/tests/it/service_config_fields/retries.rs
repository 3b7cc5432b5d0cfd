//! Tests of the fields of `retryPolicy`.

use std::time::Duration;

use reattempt_grpc::{Code, CodeSet, ServiceConfig};

use super::{ABOVE, ATTEMPTS, CODE, LENIENT, STRICT, hedging, one_error, refused, retry, throttling};

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
    let bad = ["1", "0", "-2", "2.5", "1.99", "true", "[2]", "{}", r#""""#, r#""two""#, "2.0000000001"];
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
    let never = ["", " 4", "4 ", "+4", "04", "4.", ".4e1", "0x4", "four", "null", "[4]", "\\\"4\\\""];
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
    let read = retry(STRICT, "retryableStatusCodes", r#"["ABORTED", 14, 14]"#).unwrap();
    assert_eq!(format!("{:?}", read.retryable_codes()), "{Aborted, Unavailable}");
}

// BK-5, SC-21
#[test]
fn first_backoff_may_exceed_the_cap() {
    let read = retry(STRICT, "initialBackoff", r#""9s""#).unwrap();
    assert!(read.initial_backoff() > read.max_backoff());
    assert!(retry(STRICT, "backoffMultiplier", "0.001").is_ok());
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
