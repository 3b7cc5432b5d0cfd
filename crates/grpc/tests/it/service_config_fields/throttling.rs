//! Tests of the fields of `retryThrottling`.

use reattempt_grpc::{RetryThrottling, ServiceConfig};

use super::{STRICT, one_error, refused, throttling};

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
    assert_eq!(errors.to_string(), "retryThrottling.maxTokens is required\nretryThrottling.tokenRatio is required");
    let path = "retryThrottling";
    let object = "an object, its keys Unicode text";
    assert_eq!(one_error(ServiceConfig::parse(r#"{"retryThrottling": [1]}"#)), refused(path, object, "[1]"));
}

// THR-9
#[test]
fn settings_in_code_have_same_bounds() {
    let read = |max, ratio| {
        let settings = RetryThrottling::new(max, ratio);
        (settings.max_tokens_thousandths(), settings.token_ratio_thousandths())
    };
    assert_eq!(read(10.0, 0.1), (10_000, 100));
    assert_eq!(read(0.29, 0.57), (290, 570), "a product of floats gives 569");
    assert_eq!(read(1000.0, 0.5466), (1_000_000, 546));
    assert_eq!(read(0.001, 1e300), (1, 1_000_000));
    for low in [0.0, -1.0, 0.0009, f64::NAN, f64::NEG_INFINITY] {
        assert_eq!((read(low, 0.1), read(10.0, low)), ((1, 100), (10_000, 1)), "{low}");
    }
    for high in [1000.0001, f64::MAX, f64::INFINITY] {
        assert_eq!((read(high, 0.1), read(10.0, high)), ((1_000_000, 100), (10_000, 1_000_000)), "{high}");
    }
    let default = RetryThrottling::default();
    assert_eq!(default, RetryThrottling::new(10.0, 0.1));
}
