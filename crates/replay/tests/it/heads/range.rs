//! Whatever a server says about ranges, a part is taken only where it begins with the first missing byte.

use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use reattempt_replay::resume::{Checkpoint, Continuation, ResumePoint};

use super::input::Input;

const PIECES: &[&str] = &[
    "bytes",
    "bytes ",
    "Bytes ",
    "bytes=",
    "0",
    "1",
    "99",
    "100",
    "199",
    "200",
    "-",
    "/",
    "*",
    "*/",
    "\"one\"",
    "W/\"one\"",
    "\"two\"",
    ",",
    ";",
    " ",
    "\t",
    "+",
    "18446744073709551615",
    "18446744073709551616",
    "100-199/200",
    "100-199/*",
    "Thu, 26 Nov 2026 12:00:00 GMT",
    "none",
];

const NUMBERS: &[&str] = &["0", "1", "99", "100", "101", "150", "199", "200", "201", "*"];

const FIELDS: &[&str] = &["content-range", "etag", "last-modified", "date", "content-length", "accept-ranges"];

/// The bytes received before, of a content of this length.
const OFFSET: u64 = 100;
const TOTAL: u64 = 200;

/// Reads a response's head in every way in which a download reads one.
pub(crate) fn check(data: &[u8]) {
    let mut input = Input::new(data);
    let mut response = HeaderMap::new();
    for _ in 0..input.below(6) {
        let name = HeaderName::from_static(input.pick(FIELDS));
        if let Ok(value) = HeaderValue::from_bytes(&input.text(PIECES)) {
            response.append(name, value);
        }
    }
    // Most texts are no range, so half of the heads have one.
    if input.flag() {
        let [first, last, total] = [(); 3].map(|()| input.pick(NUMBERS));
        response.insert("content-range", HeaderValue::try_from(format!("bytes {first}-{last}/{total}")).unwrap());
        response.insert("etag", HeaderValue::from_static("\"one\""));
    }
    let known = input.flag();
    let checkpoint = Checkpoint::new(OFFSET, HeaderValue::from_static("\"one\"")).unwrap();
    let checkpoint = if known { checkpoint.total(TOTAL) } else { checkpoint };
    for status in [StatusCode::OK, StatusCode::PARTIAL_CONTENT, StatusCode::RANGE_NOT_SATISFIABLE, StatusCode::FOUND] {
        match checkpoint.check(status, &response) {
            Ok(Continuation::Rest(point)) => {
                assert_eq!((status, point.position()), (StatusCode::PARTIAL_CONTENT, OFFSET));
                assert!(!known || point.total() == Some(TOTAL));
                assert_eq!(response.get_all("etag").iter().collect::<Vec<_>>(), ["\"one\""]);
            }
            Ok(Continuation::Whole { changed }) => {
                assert_eq!(status, StatusCode::OK);
                assert!(changed || response["etag"] == "\"one\"");
            }
            Ok(_) => assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE),
            Err(mismatch) => assert!(!mismatch.to_string().is_empty()),
        }
        let mut request = HeaderMap::new();
        if input.flag()
            && let Ok(range) = HeaderValue::from_bytes(&[b"bytes=".as_slice(), &input.text(PIECES)].concat())
        {
            request.insert("range", range);
        }
        if let Some(point) = ResumePoint::new(&Method::GET, &request, status, &response) {
            assert!(point.total().is_none_or(|total| point.position() <= total), "{response:?}");
        }
    }
}
