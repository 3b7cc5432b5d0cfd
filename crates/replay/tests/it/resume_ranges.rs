//! The rules for a request with its own range, and for a download that an earlier process began.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reattempt_replay::resume::{Checkpoint, Continuation, Mismatch, ResumePoint};

fn headers<'a>(fields: impl IntoIterator<Item = (&'a str, &'a str)>) -> HeaderMap {
    let field =
        |(name, value): (&str, &str)| (HeaderName::try_from(name).unwrap(), HeaderValue::from_str(value).unwrap());
    fields.into_iter().map(field).collect()
}

/// Returns the point at the start of a response with this range to a request with that one.
fn start(asked: &str, status: StatusCode, range: &str, length: &str) -> Option<ResumePoint> {
    let response = headers([("etag", "\"one\""), ("content-range", range), ("content-length", length)]);
    ResumePoint::new(&Method::GET, &headers([("range", asked)]), status, &response)
}

/// Only a request for one part in bytes is continued.
// field 28
#[test]
fn one_own_range_is_continued() {
    let rows = [
        ("bytes=100-4099", true),
        ("bytes=100-", true),
        ("bytes=-4000", true),
        ("Bytes=100-4099", true),
        ("bytes=100-100", true),
        ("bytes=0-99,100-199", false),
        ("bytes=100-99", false),
        ("bytes=-", false),
        ("bytes=", false),
        ("bytes=a-b", false),
        ("bytes 100-200", false),
        ("lines=100-200", false),
        ("bytes=+1-2", false),
        ("bytes=18446744073709551616-", false),
        ("x", false),
    ];
    for (asked, accepted) in rows {
        let point = start(asked, StatusCode::PARTIAL_CONTENT, "bytes 100-4099/10000", "4000");
        assert_eq!(point.is_some(), accepted, "{asked}");
        assert_eq!(ResumePoint::permits(&Method::GET, &headers([("range", asked)])), accepted, "{asked}");
    }
    let two = headers([("range", "bytes=0-1"), ("if-range", "\"one\"")]);
    assert!(ResumePoint::permits(&Method::GET, &two));
    let mut repeated = headers([("range", "bytes=0-1")]);
    repeated.append("range", HeaderValue::from_static("bytes=2-3"));
    assert!(!ResumePoint::permits(&Method::GET, &repeated));
}

/// The request for the rest stays within the range of the first response.
// field 28
#[test]
fn own_range_is_not_left() {
    let mut point = start("bytes=100-4099", StatusCode::PARTIAL_CONTENT, "bytes 100-4099/10000", "4000").unwrap();
    assert_eq!((point.position(), point.length(), point.total()), (100, 4000, Some(10_000)));
    point.receive(2000).unwrap();
    assert_eq!((point.received(), point.position(), point.missing()), (2000, 2100, 2000));
    let mut request = headers([("range", "bytes=100-4099"), ("if-range", "\"old\"")]);
    point.write_to(&mut request);
    assert_eq!(
        (&request["range"], &request["if-range"]),
        (&"bytes=2100-4099".parse().unwrap(), &"\"one\"".parse().unwrap())
    );
    let check = |status: u16, range: &str, length: &str| {
        let response = headers([("etag", "\"one\""), ("content-range", range), ("content-length", length)]);
        point.check(StatusCode::from_u16(status).unwrap(), &response).map(|part| (part.skip(), part.length()))
    };
    assert_eq!(check(206, "bytes 2100-4099/10000", "2000"), Ok((0, 2000)));
    assert_eq!(check(206, "bytes 100-4099/10000", "4000"), Ok((2000, 2000)));
    let other = |first, last| Err(Mismatch::Range { expected: 2100, first, last });
    assert_eq!(check(206, "bytes 2100-9999/10000", "7900"), other(2100, 9999));
    // The whole content continues beyond the range.
    assert_eq!(check(200, "", "10000"), other(0, 9999));
    assert!(point.receive(2001).is_err());
}

/// The first response's length is that of its range; a whole content is continued as such.
#[test]
fn first_part_of_own_range_is_known() {
    let partial = |range, length| start("bytes=100-", StatusCode::PARTIAL_CONTENT, range, length);
    let unknown = partial("bytes 100-4099/*", "4000").unwrap();
    assert_eq!((unknown.total(), unknown.missing()), (None, 4000));
    let response = headers([("etag", "\"one\""), ("content-range", "bytes 100-4099/4099"), ("content-length", "4000")]);
    assert_eq!(unknown.check(StatusCode::PARTIAL_CONTENT, &response), Err(Mismatch::NoRange));
    let response = headers([("etag", "\"one\""), ("content-length", "4099")]);
    let total = Mismatch::Total { expected: 4100, found: 4099 };
    assert_eq!(unknown.check(StatusCode::OK, &response), Err(total));
    let rows =
        [("bytes 100-4099/4100", "3999"), ("bytes */4100", "4000"), ("bytes 4099-100/5000", "4000"), ("x", "4000")];
    for (range, length) in rows {
        assert_eq!(partial(range, length), None, "{range}");
    }
    let whole = start("bytes=100-4099", StatusCode::OK, "", "4100").unwrap();
    assert_eq!((whole.position(), whole.missing(), whole.total()), (0, 4100, Some(4100)));
    let response = headers([("etag", "\"one\""), ("content-range", "bytes 0-9/10"), ("content-length", "10")]);
    let unasked = ResumePoint::new(&Method::GET, &HeaderMap::new(), StatusCode::PARTIAL_CONTENT, &response);
    assert_eq!(unasked, None);
}

fn tag() -> HeaderValue {
    HeaderValue::from_static("\"one\"")
}

#[test]
fn stored_validator_must_be_strong() {
    let rows = [
        ("\"one\"", true),
        ("W/\"one\"", false),
        ("\"\"", false),
        ("one", false),
        ("", false),
        ("Thu, 26 Nov 2026 12:00:00 GMT", true),
        ("Thu, 01 Jan 1970 00:00:01 GMT", false),
    ];
    for (value, accepted) in rows {
        let found = Checkpoint::new(400, HeaderValue::from_static(value));
        assert_eq!(found.is_ok(), accepted, "{value}");
        if let Err(error) = found {
            assert!(error.to_string().contains("neither a strong entity tag nor a date"));
        }
    }
}

#[test]
fn request_from_checkpoint_has_its_range() {
    let checkpoint = || Checkpoint::new(400, tag()).unwrap();
    for (checkpoint, range) in [
        (checkpoint(), "bytes=400-"),
        (checkpoint().total(1000), "bytes=400-999"),
        (checkpoint().total(401), "bytes=400-400"),
        // Nothing is missing, which only the server can confirm.
        (checkpoint().total(400), "bytes=400-"),
    ] {
        let mut request = headers([("accept-encoding", "gzip")]);
        checkpoint.write_to(&mut request);
        assert_eq!(request, headers([("range", range), ("if-range", "\"one\""), ("accept-encoding", "identity")]));
        assert!(ResumePoint::permits(&Method::GET, &request), "a broken rest is resumed");
    }
}

#[test]
fn answer_to_checkpoint_is_told_apart() {
    let whole = |changed| Ok(Some(changed));
    let range = |first, last| Err(Mismatch::Range { expected: 400, first, last });
    let beyond = |total| Err(Mismatch::Unsatisfied { expected: 400, total });
    let rows = [
        (206, "\"one\"", "bytes 400-999/1000", Ok(None)),
        (206, "\"one\"", "bytes 400-499/1000", Ok(None)),
        (206, "\"one\"", "bytes 400-999/*", Ok(None)),
        (206, "\"two\"", "bytes 400-999/1000", Err(Mismatch::Validator)),
        (206, "W/\"one\"", "bytes 400-999/1000", Err(Mismatch::Validator)),
        (206, "", "bytes 400-999/1000", Err(Mismatch::Validator)),
        (206, "\"one\"", "bytes 399-999/1000", range(399, 999)),
        (206, "\"one\"", "bytes 401-999/1000", range(401, 999)),
        (206, "\"one\"", "bytes 400-1000/*", range(400, 1000)),
        (206, "\"one\"", "bytes 400-999/1001", Err(Mismatch::Total { expected: 1000, found: 1001 })),
        (206, "\"one\"", "", Err(Mismatch::NoRange)),
        (200, "\"two\"", "", whole(true)),
        (200, "", "", whole(true)),
        (200, "\"one\"", "", whole(false)),
        (416, "", "bytes */999", Err(Mismatch::Total { expected: 1000, found: 999 })),
        (416, "", "", Err(Mismatch::Status(StatusCode::RANGE_NOT_SATISFIABLE))),
        (404, "\"one\"", "", Err(Mismatch::Status(StatusCode::NOT_FOUND))),
    ];
    let check = |checkpoint: &Checkpoint, status: u16, tag: &str, range: &str| {
        let fields = [("etag", tag), ("content-range", range)];
        let response = headers(fields.into_iter().filter(|(_, value)| !value.is_empty()));
        checkpoint.check(StatusCode::from_u16(status).unwrap(), &response)
    };
    let checkpoint = Checkpoint::new(400, tag()).unwrap();
    for (status, tag, range, expected) in rows {
        let found = check(&checkpoint.clone().total(1000), status, tag, range).map(|found| match found {
            Continuation::Whole { changed } => Some(changed),
            Continuation::Rest(point) => {
                assert_eq!((point.position(), point.received()), (400, 0));
                assert_eq!(point.total(), Some(1000));
                None
            }
            other => panic!("{other:?}"),
        });
        assert_eq!(found, expected, "{status} {tag} {range}");
    }
    // Nothing is missing, or the offset is beyond the end.
    assert_eq!(check(&checkpoint, 416, "", "bytes */400"), Ok(Continuation::Complete));
    assert_eq!(check(&checkpoint, 416, "\"one\"", "bytes */400"), Ok(Continuation::Complete));
    assert_eq!(check(&checkpoint, 416, "\"two\"", "bytes */400"), Err(Mismatch::Validator));
    assert_eq!(check(&checkpoint, 416, "", "bytes */300").map(drop), beyond(300));
    assert_eq!(check(&checkpoint, 416, "", "bytes */500").map(drop), beyond(500));
}

/// Each mismatch names the numbers that differ.
#[test]
fn mismatch_names_its_numbers() {
    let rows = [
        (
            Mismatch::Unsatisfied { expected: 400, total: 300 },
            "its content has 300 bytes, and the first missing byte is 400",
        ),
        (Mismatch::Length { expected: 600, found: Some(599) }, "its body has 599 bytes, and its range has 600"),
        (
            Mismatch::Length { expected: 600, found: None },
            "it has no valid content-length, and its range has 600 bytes",
        ),
        (Mismatch::Skip { skip: 65, most: 64 }, "it repeats 65 bytes, and at most 64 are skipped"),
    ];
    for (mismatch, text) in rows {
        assert_eq!(mismatch.to_string(), format!("the response does not continue the body: {text}"));
    }
}
