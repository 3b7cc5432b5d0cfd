//! Tests of the fields of `hedgingPolicy`.

use std::time::Duration;

use reattempt_grpc::{Code, CodeSet, MethodPolicy};

use super::{CODE, NOT_BELOW, STRICT, hedging, method, refused};

// HG-13, SC-22
#[test]
fn hedging_policy_needs_only_its_attempts() {
    let read = hedging(STRICT, "", "").unwrap();
    assert_eq!((read.max_attempts(), read.hedging_delay()), (4, Duration::from_millis(500)));
    assert_eq!(read.non_fatal_codes(), CodeSet::from_iter([Code::Unavailable]));
    for value in [r#"{"maxAttempts": 3}"#, r#"{"maxAttempts": 3, "nonFatalStatusCodes": []}"#] {
        let MethodPolicy::Hedging(read) = method(STRICT, "hedgingPolicy", value).unwrap().policy else {
            panic!("{value}")
        };
        assert_eq!((read.max_attempts(), read.hedging_delay()), (3, Duration::ZERO));
        assert!(read.non_fatal_codes().is_empty());
    }
    let missing = ("methodConfig[0].hedgingPolicy.maxAttempts".to_owned(), "is required".to_owned());
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
