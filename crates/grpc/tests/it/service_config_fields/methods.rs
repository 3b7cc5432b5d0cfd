//! Tests of a method's fields other than its policy.

use std::time::Duration;

use reattempt_grpc::{MethodPolicy, ServiceConfig};

use super::{HEDGING, LENIENT, NOT_BELOW, RETRY, STRICT, method, one_error, policy, refused};

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
    let both = format!(r#"{{"methodConfig": [{{"hedgingPolicy": {hedging}, "retryPolicy": {retry}}}]}}"#);
    for reader in [STRICT, LENIENT] {
        let expected =
            ("methodConfig[0].hedgingPolicy".to_owned(), "must not be given beside `retryPolicy`".to_owned());
        assert_eq!(one_error(reader().parse(&both)), Err(expected));
    }
    let null = both.replace(&hedging, "null");
    assert!(ServiceConfig::parse(&null).is_ok(), "null is no policy");
    assert_eq!(method(STRICT, "timeout", "null").unwrap().policy, MethodPolicy::None);
}
