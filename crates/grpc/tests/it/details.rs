//! Tests of a status's details: RetryInfo, and anything else that a peer puts there.

use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use reattempt_grpc::{remove_unreadable_details, retry_info};

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(u8::try_from(value & 0x7f).unwrap() | 0x80);
        value >>= 7;
    }
    bytes.push(u8::try_from(value).unwrap());
    bytes
}

/// Returns a field that contains bytes.
fn field(number: u64, value: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(value.len().try_into().unwrap()), value.to_vec()].concat()
}

/// Returns a field that contains a number.
fn number(number: u64, value: i64) -> Vec<u8> {
    [varint(number << 3), varint(value.cast_unsigned())].concat()
}

fn any(name: &str, value: &[u8]) -> Vec<u8> {
    field(3, &[field(1, name.as_bytes()), field(2, value)].concat())
}

fn info(seconds: i64, nanos: i64) -> Vec<u8> {
    any(RETRY_INFO, &field(1, &[number(1, seconds), number(2, nanos)].concat()))
}

/// Returns a google.rpc.Status with these details.
fn status(details: &[Vec<u8>]) -> Vec<u8> {
    [number(1, 14), field(2, b"busy"), details.concat()].concat()
}

fn headers(value: impl AsRef<[u8]>) -> HeaderMap {
    let value = HeaderValue::from_bytes(value.as_ref()).unwrap();
    HeaderMap::from_iter([("grpc-status-details-bin".parse().unwrap(), value)])
}

fn asked(status: &[u8]) -> Option<Duration> {
    let padded = retry_info(&headers(STANDARD.encode(status)));
    assert_eq!(padded, retry_info(&headers(STANDARD_NO_PAD.encode(status))));
    padded
}

// RI-1
#[test]
fn ri_1_delay_is_found_among_details() {
    let debug = any("type.googleapis.com/google.rpc.DebugInfo", &field(2, b"detail"));
    let rows = [
        (vec![info(1, 500_000_000)], Some(Duration::from_millis(1500))),
        (vec![debug.clone(), info(3, 0)], Some(Duration::from_secs(3))),
        (vec![info(0, 1)], Some(Duration::from_nanos(1))),
        (vec![any(RETRY_INFO, &field(1, &[]))], Some(Duration::ZERO)),
        (vec![info(i64::MAX, 999_999_999)], Some(Duration::new(u64::MAX / 2, 999_999_999))),
        (vec![debug], None),
        (vec![], None),
        // None of these is a delay.
        (vec![info(-1, 0)], None),
        (vec![info(0, -1)], None),
        (vec![info(0, 1_000_000_000)], None),
        (vec![any(RETRY_INFO, &[])], None),
    ];
    for (details, expected) in rows {
        assert_eq!(asked(&status(&details)), expected, "{details:?}");
    }
}

// RI-4
#[test]
fn truncated_message_is_no_message() {
    let whole = status(&[info(1, 0)]);
    for end in 0..whole.len() {
        assert_eq!(asked(&whole[..end]), None, "{end}");
    }
    assert_eq!(asked(&whole), Some(Duration::from_secs(1)));
    for more in [&[0x08][..], &[0x1a, 0xff, 0xff], &[0x07], &[0x0b], &[0xff; 11]] {
        assert_eq!(asked(&[whole.as_slice(), more].concat()), None, "{more:?}");
    }
}

// RI-4
#[test]
fn fields_of_other_types_are_skipped() {
    let fixed = [vec![0x21], vec![1; 8], vec![0x2d], vec![1; 4]].concat();
    let whole = [fixed, status(&[info(1, 0)])].concat();
    assert_eq!(asked(&whole), Some(Duration::from_secs(1)));
}

// TN-7
#[test]
fn only_what_is_not_base64_is_removed() {
    for (value, stays) in [("", true), ("CAU", true), ("CAU=", true), ("C", false), ("C A", false), ("C-_A", false)] {
        let mut headers = headers(value);
        assert_eq!(remove_unreadable_details(&mut headers), !stays, "{value}");
        assert_eq!(headers.len(), usize::from(stays), "{value}");
    }
    assert!(!remove_unreadable_details(&mut HeaderMap::new()));
}

fn config() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(1), failure_persistence: None, ..<_>::default() }
}

proptest! {
    #![proptest_config(config())]

    /// No bytes cause a panic.
    // RI-4
    #[test]
    fn ri_4_any_bytes_at_all(bytes in proptest::collection::vec(any_byte(), 0..200)) {
        let _ = asked(&bytes);
        if let Ok(value) = HeaderValue::from_bytes(&bytes) {
            let mut headers = HeaderMap::from_iter([("grpc-status-details-bin".parse().unwrap(), value)]);
            let _ = retry_info(&headers);
            remove_unreadable_details(&mut headers);
        }
    }
}

fn any_byte() -> impl Strategy<Value = u8> {
    // Mostly tags and short lengths, so that some messages are nearly valid.
    prop_oneof![0_u8..40, proptest::num::u8::ANY]
}
