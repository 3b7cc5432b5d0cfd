//! The rules for continuing a body, as tables, and a property over any response.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use proptest::prelude::*;
use reattempt_replay::resume::{Mismatch, ResumePoint};

const DATE: &str = "Thu, 26 Nov 2026 12:01:00 GMT";

fn headers<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let field =
        |(name, value): (&str, &str)| (HeaderName::try_from(name).unwrap(), HeaderValue::from_str(value).unwrap());
    let mut map = HeaderMap::new();
    for (name, value) in fields.into_iter().map(field) {
        map.append(name, value);
    }
    map
}

fn start<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> Option<ResumePoint> {
    ResumePoint::new(&Method::GET, &HeaderMap::new(), StatusCode::OK, &headers(fields))
}

/// The point after 400 of 1000 bytes.
fn point() -> ResumePoint {
    let mut point = start([("etag", "\"one\""), ("content-length", "1000")]).unwrap();
    point.receive(400).unwrap();
    point
}

#[test]
fn response_without_strong_tag_refused() {
    let rows: [(&[(&str, &str)], bool); 22] = [
        (&[("etag", "\"one\"")], true),
        (&[("etag", "\"a/b=,;'\u{e9}\"")], true),
        (&[("etag", "W/\"one\"")], false),
        (&[("etag", "w/\"one\"")], false),
        (&[("etag", "one")], false),
        (&[("etag", "\"\"")], false),
        (&[("etag", "\"")], false),
        (&[("etag", "\"o\"ne\"")], false),
        (&[("etag", "\"one\""), ("etag", "\"two\"")], false),
        (&[("etag", "\"one\""), ("etag", "\"one\"")], false),
        (&[], false),
        // A date, which is strong 60 s later.
        (&[("last-modified", "Thu, 26 Nov 2026 12:00:00 GMT"), ("date", DATE)], true),
        (&[("last-modified", "Thu, 26 Nov 2026 12:00:01 GMT"), ("date", DATE)], false),
        (&[("last-modified", "Thu, 26 Nov 2026 12:02:00 GMT"), ("date", DATE)], false),
        (&[("last-modified", "Thu, 26 Nov 2026 12:00:00 GMT")], false),
        (&[("last-modified", "yesterday"), ("date", DATE)], false),
        (&[("last-modified", "Thu, 26 Nov 2026 12:00:00 GMT"), ("date", "now")], false),
        // A date that reproducible builds give every version.
        (&[("last-modified", "Thu, 01 Jan 1970 00:00:01 GMT"), ("date", DATE)], false),
        (&[("last-modified", "Tue, 01 Jan 1980 23:59:59 GMT"), ("date", DATE)], false),
        (&[("last-modified", "Wed, 02 Jan 1980 00:00:00 GMT"), ("date", DATE)], true),
        // A date is no substitute for an entity tag (RFC 9110 §13.1.5).
        (&[("etag", "W/\"one\""), ("last-modified", "Thu, 26 Nov 2026 12:00:00 GMT"), ("date", DATE)], false),
        (&[("etag", "\"one\""), ("last-modified", "yesterday")], true),
    ];
    for (fields, accepted) in rows {
        let all = [("content-length", "1000")].iter().chain(fields).copied();
        assert_eq!(start(all).is_some(), accepted, "{fields:?}");
    }
}

#[test]
fn response_of_unknown_bytes_refused() {
    let rows: [(&[(&str, &str)], bool); 18] = [
        (&[("content-length", "1000")], true),
        (&[("content-length", "18446744073709551615")], true),
        (&[("content-length", "18446744073709551616")], false),
        (&[("content-length", "+1000")], false),
        (&[("content-length", "-1")], false),
        (&[("content-length", "1000, 1000")], false),
        (&[("content-length", "")], false),
        (&[("content-length", "1000"), ("content-length", "1001")], false),
        (&[], false),
        (&[("content-length", "1000"), ("content-encoding", "gzip")], false),
        (&[("content-length", "1000"), ("content-encoding", "identity"), ("content-encoding", "br")], false),
        (&[("content-length", "1000"), ("content-encoding", "identity")], true),
        (&[("content-length", "1000"), ("accept-ranges", "none")], false),
        (&[("content-length", "1000"), ("accept-ranges", "NONE")], false),
        (&[("content-length", "1000"), ("accept-ranges", "bytes")], true),
        // A transfer coding voids the length (RFC 9112 §6.3).
        (&[("content-length", "1000"), ("transfer-encoding", "chunked")], false),
        (&[("content-length", "1000"), ("transfer-encoding", "gzip, chunked")], false),
        (&[("content-length", "1000"), ("transfer-encoding", "identity")], false),
    ];
    for (fields, accepted) in rows {
        let all = [("etag", "\"one\"")].iter().chain(fields).copied();
        assert_eq!(start(all).is_some(), accepted, "{fields:?}");
    }
}

/// A response is continued only if it is the whole content, in response to a plain GET.
#[test]
fn request_with_own_terms_refused() {
    let response = headers([("etag", "\"one\""), ("content-length", "1000")]);
    let accepted = |method: &Method, status: u16, request: &HeaderMap| {
        ResumePoint::new(method, request, StatusCode::from_u16(status).unwrap(), &response).is_some()
    };
    assert!(accepted(&Method::GET, 200, &headers([("accept", "*/*")])));
    for method in [Method::HEAD, Method::POST, Method::PUT, Method::OPTIONS, Method::CONNECT] {
        assert!(!accepted(&method, 200, &HeaderMap::new()), "{method}");
    }
    for status in [201, 203, 204, 206, 304, 404, 500] {
        assert!(!accepted(&Method::GET, status, &HeaderMap::new()), "{status}");
    }
    let terms = ["range", "if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
    for name in terms {
        assert!(!accepted(&Method::GET, 200, &headers([(name, "x")])), "{name}");
    }
}

#[test]
fn wrong_continuation_refused() {
    let other = |first, last| Err(Mismatch::Range { expected: 400, first, last });
    let total = |found| Err(Mismatch::Total { expected: 1000, found });
    let rows = [
        (206, "\"one\"", "bytes 400-999/1000", &[][..], Ok(())),
        (206, "\"one\"", "Bytes 400-999/1000", &[("content-length", "600")], Ok(())),
        (200, "\"one\"", "bytes 400-999/1000", &[], Err(Mismatch::Status(StatusCode::OK))),
        (416, "\"one\"", "bytes */300", &[], Err(Mismatch::Status(StatusCode::RANGE_NOT_SATISFIABLE))),
        (304, "\"one\"", "bytes 400-999/1000", &[], Err(Mismatch::Status(StatusCode::NOT_MODIFIED))),
        (206, "\"two\"", "bytes 400-999/1000", &[], Err(Mismatch::Validator)),
        (206, "W/\"one\"", "bytes 400-999/1000", &[], Err(Mismatch::Validator)),
        (206, "", "bytes 400-999/1000", &[], Err(Mismatch::Validator)),
        (206, "\"one\"", "bytes 400-999/1000", &[("etag", "\"one\"")], Err(Mismatch::Validator)),
        (206, "\"one\"", "bytes 399-999/1000", &[], other(399, 999)),
        (206, "\"one\"", "bytes 401-999/1000", &[], other(401, 999)),
        (206, "\"one\"", "bytes 0-999/1000", &[], other(0, 999)),
        (206, "\"one\"", "bytes 400-998/1000", &[], other(400, 998)),
        (206, "\"one\"", "bytes 400-999/1001", &[], total(1001)),
        (206, "\"one\"", "bytes 400-1000/1001", &[], total(1001)),
        (206, "\"one\"", "bytes 400-999/*", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "bytes 400-1000/1000", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "bytes 999-400/1000", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "bytes */1000", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "bytes 400-18446744073709551616/1000", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "bytes 18446744073709552016-999/1000", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "bytes +400-999/1000", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "bytes=400-999/1000", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "lines 400-999/1000", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "", &[], Err(Mismatch::NoRange)),
        (206, "\"one\"", "bytes 400-999/1000", &[("content-range", "bytes 400-999/1000")], Err(Mismatch::NoRange)),
        (206, "\"one\"", "bytes 400-999/1000", &[("content-length", "599")], Err(Mismatch::Length)),
        (206, "\"one\"", "bytes 400-999/1000", &[("content-length", "many")], Err(Mismatch::Length)),
        (206, "\"one\"", "bytes 400-999/1000", &[("content-encoding", "gzip")], Err(Mismatch::Encoding)),
        (206, "\"one\"", "bytes 400-999/1000", &[("transfer-encoding", "Chunked")], Ok(())),
        (206, "\"one\"", "bytes 400-999/1000", &[("transfer-encoding", "gzip")], Err(Mismatch::Encoding)),
        (206, "\"one\"", "bytes 400-999/1000", &[("transfer-encoding", "gzip, chunked")], Err(Mismatch::Encoding)),
        (
            206,
            "\"one\"",
            "bytes 400-999/1000",
            &[("transfer-encoding", "gzip"), ("transfer-encoding", "chunked")],
            Err(Mismatch::Encoding),
        ),
        (
            206,
            "\"one\"",
            "bytes 400-999/1000",
            &[("content-type", "Multipart/byteranges; boundary=x")],
            Err(Mismatch::Multipart),
        ),
    ];
    for (status, etag, range, more, expected) in rows {
        let fields = [("etag", etag), ("content-range", range)].into_iter().filter(|(_, value)| !value.is_empty());
        let response = headers(fields.chain(more.iter().copied()));
        let found = point().check(StatusCode::from_u16(status).unwrap(), &response);
        assert_eq!(found, expected, "{status} {response:?}");
    }
}

/// A response that repeats the date continues the body; one without it, or with a new entity tag, does not.
#[test]
fn date_must_be_repeated() {
    let modified = ("last-modified", "Thu, 26 Nov 2026 12:00:00 GMT");
    let mut point = start([modified, ("date", DATE), ("content-length", "1000")]).unwrap();
    point.receive(400).unwrap();
    let mut request = HeaderMap::new();
    point.write_to(&mut request);
    assert_eq!(request["if-range"], modified.1);
    let range = ("content-range", "bytes 400-999/1000");
    let check = |fields: &[(&str, &str)]| {
        point.check(StatusCode::PARTIAL_CONTENT, &headers([range].iter().chain(fields).copied()))
    };
    assert_eq!(check(&[modified]), Ok(()));
    assert_eq!(check(&[]), Err(Mismatch::Validator));
    assert_eq!(check(&[("last-modified", "Thu, 26 Nov 2026 12:00:01 GMT")]), Err(Mismatch::Validator));
    assert_eq!(check(&[modified, ("etag", "\"one\"")]), Err(Mismatch::Validator));
}

#[test]
fn body_beyond_its_length_refused() {
    let mut point = point();
    assert_eq!((point.received(), point.missing(), point.total()), (400, 600, 1000));
    assert!(point.receive(601).is_err());
    assert!(point.receive(u64::MAX).is_err());
    assert_eq!(point.missing(), 600);
    point.receive(600).unwrap();
    let error = point.receive(1).unwrap_err();
    assert_eq!(error.to_string(), "the body is longer than its content-length of 1000 bytes");
    assert_eq!(point.missing(), 0);
}

/// A `HeaderMap` that takes no more names would panic, so a request for the rest always has room for its own.
#[test]
fn request_without_room_is_refused() {
    let request =
        |names: u32| (0..names).map(|at| (HeaderName::try_from(format!("x-{at}")).unwrap(), "".parse().unwrap()));
    let mut most = request(24_573).collect();
    assert!(ResumePoint::permits(&Method::GET, &most));
    point().write_to(&mut most);
    assert_eq!(most.keys_len(), 24_576);
    assert!(!ResumePoint::permits(&Method::GET, &request(24_574).collect()));
}

#[test]
fn request_for_rest_replaces_own_coding() {
    let mut request = headers([("accept-encoding", "gzip"), ("accept", "*/*")]);
    point().write_to(&mut request);
    let expected =
        [("accept", "*/*"), ("range", "bytes=400-"), ("if-range", "\"one\""), ("accept-encoding", "identity")];
    assert_eq!(request, headers(expected));
}

fn any_value() -> impl Strategy<Value = String> {
    let number = prop_oneof![Just("400".to_owned()), Just("999".to_owned()), Just("1000".to_owned()), "[0-9]{0,21}"];
    let range = (number.clone(), number.clone(), number)
        .prop_map(|(first, last, total)| format!("bytes {first}-{last}/{total}"));
    prop_oneof![range, "[ -~]{0,30}", Just("\"one\"".to_owned()), Just("bytes 400-999/1000".to_owned())]
}

proptest! {
    /// Of all responses, only those with the status, the validator and the range are accepted; none causes a panic.
    #[test]
    fn only_exact_continuation_is_accepted(
        status in prop_oneof![Just(206_u16), 100..1000_u16],
        fields in prop::collection::vec(
            (prop::sample::select(vec!["etag", "content-range", "content-length", "content-type"]), any_value()),
            0..5,
        ),
    ) {
        let response = headers(fields.iter().map(|(name, value)| (*name, value.as_str())));
        let accepted = point().check(StatusCode::from_u16(status).unwrap(), &response).is_ok();
        let all = |name| response.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
        let exact = status == 206
            && all("etag") == [b"\"one\""]
            && all("content-range") == [b"bytes 400-999/1000"];
        prop_assert!(exact || !accepted, "{status} {response:?}");
        let _ = start(fields.iter().map(|(name, value)| (*name, value.as_str())));
    }
}
