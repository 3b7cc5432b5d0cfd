//! The rules for continuing a body, as tables, and a property over any response.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use proptest::prelude::*;
use reattempt_replay::resume::{Mismatch, Part, ResumePoint};

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

/// A response is continued only if it is the whole content, in response to a GET without a precondition.
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
    let terms = ["if-range", "if-match", "if-none-match", "if-modified-since", "if-unmodified-since"];
    for name in terms {
        assert!(!accepted(&Method::GET, 200, &headers([(name, "x")])), "{name}");
    }
}

#[test]
fn wrong_continuation_refused() {
    let found = |skip, length| Ok((skip, length));
    let long = |found| Err(Mismatch::Length { expected: 600, found });
    let other = |first, last| Err(Mismatch::Range { expected: 400, first, last });
    let total = |found| Err(Mismatch::Total { expected: 1000, found });
    let rows = [
        (206, "\"one\"", "bytes 400-999/1000", &[][..], found(0, 600)),
        (206, "\"one\"", "Bytes 400-999/1000", &[("content-length", "600")], found(0, 600)),
        // The whole content of the same version.
        (200, "\"one\"", "", &[("content-length", "1000")], found(400, 600)),
        (200, "\"one\"", "", &[("content-length", "1001")], total(1001)),
        (200, "\"one\"", "", &[("content-length", "0")], total(0)),
        (200, "\"one\"", "", &[], Err(Mismatch::Length { expected: 1000, found: None })),
        (200, "\"one\"", "", &[("content-length", "1000"), ("content-encoding", "gzip")], Err(Mismatch::Encoding)),
        (200, "\"two\"", "", &[("content-length", "1000")], Err(Mismatch::Status(StatusCode::OK))),
        (200, "W/\"one\"", "", &[("content-length", "1000")], Err(Mismatch::Status(StatusCode::OK))),
        (200, "", "", &[("content-length", "1000")], Err(Mismatch::Status(StatusCode::OK))),
        (416, "\"one\"", "bytes */300", &[], Err(Mismatch::Unsatisfied { expected: 400, total: 300 })),
        (416, "\"one\"", "", &[], Err(Mismatch::Status(StatusCode::RANGE_NOT_SATISFIABLE))),
        (304, "\"one\"", "bytes 400-999/1000", &[], Err(Mismatch::Status(StatusCode::NOT_MODIFIED))),
        (206, "\"two\"", "bytes 400-999/1000", &[], Err(Mismatch::Validator)),
        (206, "W/\"one\"", "bytes 400-999/1000", &[], Err(Mismatch::Validator)),
        (206, "", "bytes 400-999/1000", &[], Err(Mismatch::Validator)),
        (206, "\"one\"", "bytes 400-999/1000", &[("etag", "\"one\"")], Err(Mismatch::Validator)),
        // A part that begins earlier, one that ends earlier, and both.
        (206, "\"one\"", "bytes 399-999/1000", &[], found(1, 600)),
        (206, "\"one\"", "bytes 0-999/1000", &[], found(400, 600)),
        (206, "\"one\"", "bytes 400-998/1000", &[], found(0, 599)),
        (206, "\"one\"", "bytes 300-400/1000", &[("content-length", "101")], found(100, 1)),
        (206, "\"one\"", "bytes 300-399/1000", &[], other(300, 399)),
        (206, "\"one\"", "bytes 401-999/1000", &[], other(401, 999)),
        (206, "\"one\"", "bytes 400-999/1001", &[], total(1001)),
        (206, "\"one\"", "bytes 400-1000/1001", &[], total(1001)),
        (206, "\"one\"", "bytes 400-999/*", &[], found(0, 600)),
        (206, "\"one\"", "bytes 400-1000/*", &[], other(400, 1000)),
        (206, "\"one\"", "bytes 400-18446744073709551615/*", &[], Err(Mismatch::NoRange)),
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
        (206, "\"one\"", "bytes 400-999/1000", &[("content-length", "599")], long(Some(599))),
        (206, "\"one\"", "bytes 400-999/1000", &[("content-length", "many")], long(None)),
        (206, "\"one\"", "bytes 400-999/1000", &[("content-encoding", "gzip")], Err(Mismatch::Encoding)),
        (206, "\"one\"", "bytes 400-999/1000", &[("transfer-encoding", "Chunked")], found(0, 600)),
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
        assert_eq!(found.map(|part| (part.skip(), part.length())), expected, "{status} {response:?}");
    }
}

/// A 206 may omit the date (RFC 9110 §15.3.7), unless bytes must be skipped. Another date or a new entity tag is
/// refused.
#[test]
fn date_may_be_omitted() {
    let modified = ("last-modified", "Thu, 26 Nov 2026 12:00:00 GMT");
    let mut point = start([modified, ("date", DATE), ("content-length", "1000")]).unwrap();
    point.receive(400).unwrap();
    let mut request = HeaderMap::new();
    point.write_to(&mut request);
    assert_eq!(request["if-range"], modified.1);
    assert!(!point.has_tag());
    let check = |first: u64, fields: &[(&str, &str)]| {
        let range = format!("bytes {first}-999/1000");
        let fields = [("content-range", range.as_str())].into_iter().chain(fields.iter().copied());
        point.check(StatusCode::PARTIAL_CONTENT, &headers(fields)).map(|part| (part.skip(), part.length()))
    };
    let all = |skip| Ok((skip, 600));
    assert_eq!(check(400, &[modified]), all(0));
    assert_eq!(check(400, &[]), all(0));
    assert_eq!(check(399, &[modified]), all(1));
    assert_eq!(check(399, &[]), Err(Mismatch::Range { expected: 400, first: 399, last: 999 }));
    assert_eq!(check(400, &[("last-modified", "Thu, 26 Nov 2026 12:00:01 GMT")]), Err(Mismatch::Validator));
    assert_eq!(check(400, &[modified, ("etag", "\"one\"")]), Err(Mismatch::Validator));
    assert_eq!(check(400, &[("etag", "\"one\"")]), Err(Mismatch::Validator));
}

#[test]
fn body_beyond_its_length_refused() {
    let mut point = point();
    assert_eq!((point.received(), point.missing(), point.total()), (400, 600, Some(1000)));
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
        [("accept", "*/*"), ("range", "bytes=400-999"), ("if-range", "\"one\""), ("accept-encoding", "identity")];
    assert_eq!(request, headers(expected));
}

fn any_value() -> impl Strategy<Value = String> {
    let number = prop_oneof![Just("400".to_owned()), Just("999".to_owned()), Just("1000".to_owned()), "[0-9]{0,21}"];
    let range = (number.clone(), number.clone(), number)
        .prop_map(|(first, last, total)| format!("bytes {first}-{last}/{total}"));
    prop_oneof![range, "[ -~]{0,30}", Just("\"one\"".to_owned()), Just("bytes 400-999/1000".to_owned())]
}

proptest! {
    /// Of all responses, only those with the status, the validator and a range that contains the first missing byte are
    /// accepted; none causes a panic.
    #[test]
    fn only_covering_part_is_accepted(
        status in prop_oneof![Just(206_u16), Just(200_u16), 100..1000_u16],
        fields in prop::collection::vec(
            (prop::sample::select(vec!["etag", "content-range", "content-length", "content-type"]), any_value()),
            0..5,
        ),
    ) {
        let response = headers(fields.iter().map(|(name, value)| (*name, value.as_str())));
        let found = point().check(StatusCode::from_u16(status).unwrap(), &response);
        let all = |name| response.get_all(name).iter().map(HeaderValue::as_bytes).collect::<Vec<_>>();
        let is_promised = |part: Part| {
            let (first, last) = (400 - part.skip(), 399 + part.length());
            let ranges = ["1000", "*"].map(|total| format!("bytes {first}-{last}/{total}"));
            let is_ranged = ranges.iter().any(|range| all("content-range") == [range.as_bytes()]);
            let is_whole = (first, last) == (0, 999) && all("content-length") == [b"1000"];
            (status == 206 && is_ranged) || (status == 200 && is_whole)
        };
        let is_same = all("etag") == [b"\"one\""];
        prop_assert!(found.is_err() || is_same && is_promised(found.unwrap()), "{status} {response:?}");
        let _ = start(fields.iter().map(|(name, value)| (*name, value.as_str())));
    }
}
