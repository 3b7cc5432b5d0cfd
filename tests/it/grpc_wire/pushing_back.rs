//! The field `grpc-retry-pushback-ms` (§9).

use super::*;

fn pushed_back(code: &[u8], values: &[&'static [u8]]) -> Vec<Step> {
    let pushback = values.iter().map(|value| ("grpc-retry-pushback-ms", *value));
    let all: Vec<_> = std::iter::once(("grpc-status", code)).chain(pushback).collect();
    let mut only = head(&[]);
    for (name, value) in all {
        only.headers_mut().append(name, HeaderValue::from_bytes(value).unwrap());
    }
    vec![Step::Read, Step::Only(only)]
}

// PB-3, PB-9, PB-10
#[tokio::test]
async fn pb_3_invalid_number_stops_the_call() {
    let rows: [&[&'static [u8]]; 11] = [
        &[b"-1"],
        &[b"-2147483648"],
        &[b""],
        &[b"soon"],
        &[b"1.5"],
        &[b"05"],
        &[b"+5"],
        &[b"2147483648"],
        &[b"\xff\xfe"],
        &[b"0", b"0"],
        &[b"99999999999999999999999"],
    ];
    for values in rows {
        let (server, answer, stop) = call([pushed_back(b"14", values)]).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable, "{values:?}");
        assert_eq!((server.calls(), stop), (1, StopReason::ServerSaidStop), "{values:?}");
    }
}

// PB-4
#[tokio::test]
async fn pb_4_zero_is_at_once() {
    let (server, answer, _) = call([pushed_back(b"14", &[b"0"])]).await;
    assert_eq!((answer.unwrap(), server.calls()), ("hello".to_owned(), 2));
}

// PB-7
#[tokio::test]
async fn pb_7_pushback_makes_no_code_retryable() {
    for code in [&b"3"[..], b"13", b"1"] {
        let (server, answer, stop) = call([pushed_back(code, &[b"0"])]).await;
        assert!(answer.is_err());
        assert_eq!((server.calls(), stop), (1, StopReason::Permanent), "{code:?}");
    }
}

// PB-11
#[tokio::test]
async fn pb_11_pushback_after_commit_is_ignored() {
    for value in [&b"0"[..], b"-1", b"\xff"] {
        let trailers = fields(&[("grpc-status", b"14"), ("grpc-retry-pushback-ms", value)]);
        let script = vec![Step::Read, Step::Head(head(&[])), Step::Trailers(trailers)];
        let (server, answer, _) = call([script]).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable);
        assert_eq!(server.calls(), 1);
    }
}

/// A tonic server sends a status with metadata in one block of headers. Metadata of a response goes
/// out with its headers, where pushback has no meaning.
// PB-12
#[tokio::test]
async fn pb_12_pushback_in_headers_is_ignored() {
    for value in [&b"0"[..], b"-1"] {
        let begin = Step::Head(head(&[("grpc-retry-pushback-ms", value)]));
        let trailers = fields(&[("grpc-status", b"14")]);
        let script = vec![Step::Read, begin, Step::Trailers(trailers)];
        let (server, answer, stop) = call([script]).await;
        assert_eq!(answer.unwrap_err().code(), Code::Unavailable);
        assert_eq!((server.calls(), stop), (1, StopReason::Succeeded), "{value:?}");
    }
}
