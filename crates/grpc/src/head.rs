//! The status and the pushback in a response head.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use reattempt_core::{ServerHint, Verdict};

use crate::{Code, verdict_of_code};

/// The header with the status code, sent in the trailers or in the head of a response without messages.
pub const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
/// The header with the status message, percent-encoded.
pub const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
/// The header with a server's [`pushback`], which delays or stops retries.
pub const GRPC_RETRY_PUSHBACK_MS: HeaderName = HeaderName::from_static("grpc-retry-pushback-ms");

/// Returns the gRPC code that follows from a response head, if the head determines it.
///
/// | head | code |
/// |---|---|
/// | with `grpc-status` | the one in the header |
/// | an HTTP status other than 200, or a non-gRPC content type | the one from gRPC's table of HTTP statuses |
/// | any other, including one without a content type | `None`: the call is committed to this response, and the status follows in the trailers |
// ST-1, OUT-1
pub fn code_of_head(status: StatusCode, headers: &HeaderMap) -> Option<Code> {
    match headers.get(GRPC_STATUS) {
        Some(value) => Some(Code::from_bytes(value.as_bytes())),
        None => code_of_http(status, headers),
    }
}

/// Returns the gRPC code that follows from a response head, for lookup in a policy's list of codes.
///
/// This is the result of [`code_of_head`], except for an undefined `grpc-status` number, which gives `None`.
// RET-5
pub fn listed_code_of_head(status: StatusCode, headers: &HeaderMap) -> Option<Code> {
    match headers.get(GRPC_STATUS) {
        Some(value) => Code::listed_from_bytes(value.as_bytes()),
        None => code_of_http(status, headers),
    }
}

/// Returns the code for a response without a `grpc-status`.
fn code_of_http(status: StatusCode, headers: &HeaderMap) -> Option<Code> {
    match status.as_u16() {
        200 if headers.get(http::header::CONTENT_TYPE).is_none_or(is_grpc) => None,
        400 => Some(Code::Internal),
        401 => Some(Code::Unauthenticated),
        403 => Some(Code::PermissionDenied),
        404 => Some(Code::Unimplemented),
        429 | 502 | 503 | 504 => Some(Code::Unavailable),
        _ => Some(Code::Unknown),
    }
}

fn is_grpc(content_type: &HeaderValue) -> bool {
    let value = content_type.as_bytes();
    let name = b"application/grpc";
    value.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name))
        && matches!(value.get(name.len()), None | Some(b'+' | b';' | b'-' | b' '))
}

/// Returns the verdict for a response head, or `None` if the call is committed to this response.
///
/// The verdict is that of [`verdict_of_code`]. A head never proves that nothing was processed. A head without
/// `grpc-status` comes from a proxy, which may have forwarded the request. A server that knows that a retry is safe can
/// ask for it with a [`pushback`].
pub fn verdict_of_head(status: StatusCode, headers: &HeaderMap) -> Option<Verdict> {
    code_of_head(status, headers).map(verdict_of_code)
}

/// Reads `grpc-retry-pushback-ms`, the delay before the next attempt.
///
/// The value is a signed 32-bit decimal number of milliseconds. The delay is used exactly, without jitter or cap. If
/// the value is negative or malformed, or there are several values, the call must not be retried.
///
/// A delay is the server's own request for a retry, so the call may then be retried even if it is not marked as
/// repeatable. It must still have a retryable code.
// PB-1, PB-4, PB-9, PB-7
pub fn pushback(headers: &HeaderMap) -> ServerHint {
    let mut values = headers.get_all(GRPC_RETRY_PUSHBACK_MS).iter();
    match (values.next(), values.next()) {
        (None, _) => ServerHint::None,
        (Some(value), None) => milliseconds(value.as_bytes())
            .map_or(ServerHint::Stop, |wait| ServerHint::Exactly(Duration::from_millis(u64::from(wait)))),
        (Some(_), Some(_)) => ServerHint::Stop,
    }
}

/// Parses a decimal number from 0 to 2147483647, without a sign or leading zeros.
fn milliseconds(value: &[u8]) -> Option<u32> {
    let plain = value == b"0" || (!value.starts_with(b"0") && value.iter().all(u8::is_ascii_digit));
    let text = std::str::from_utf8(value).ok().filter(|_| plain)?;
    text.parse::<i32>().ok().and_then(|wait| u32::try_from(wait).ok())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use reattempt_core::{Failure, FailureKind};

    use super::*;

    fn headers(name: &'static str, values: &[&[u8]]) -> HeaderMap {
        values
            .iter()
            .map(|value| (http::HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap()))
            .collect()
    }

    // ST-1
    #[test]
    fn st_1_status_among_headers_settles_call() {
        let head = headers("grpc-status", &[b"14"]);
        assert_eq!(code_of_head(StatusCode::OK, &head), Some(Code::Unavailable));
        assert_eq!(code_of_head(StatusCode::OK, &HeaderMap::new()), None);
        let garbage = headers("grpc-status", &[b"\xff"]);
        assert_eq!(code_of_head(StatusCode::OK, &garbage), Some(Code::Unknown));
    }

    // OUT-1
    #[test]
    fn response_that_is_not_grpc_is_mapped() {
        let rows = [
            (400, Code::Internal),
            (401, Code::Unauthenticated),
            (403, Code::PermissionDenied),
            (404, Code::Unimplemented),
            (429, Code::Unavailable),
            (502, Code::Unavailable),
            (503, Code::Unavailable),
            (504, Code::Unavailable),
            (500, Code::Unknown),
            (302, Code::Unknown),
        ];
        for (status, code) in rows {
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(code_of_head(status, &HeaderMap::new()), Some(code), "{status}");
        }
    }

    // OUT-1
    #[test]
    fn out_1_so_is_one_of_another_content_type() {
        let code = |value: &[u8]| code_of_head(StatusCode::OK, &headers("content-type", &[value]));
        for grpc in [&b"application/grpc"[..], b"application/grpc+json", b"APPLICATION/GRPC;a=b"] {
            assert_eq!(code(grpc), None);
        }
        for other in [&b"text/html"[..], b"application/grpcx", b"application/grp", b"\xff", b""] {
            assert_eq!(code(other), Some(Code::Unknown));
        }
    }

    // RET-5
    #[test]
    fn no_list_has_a_status_that_nobody_defined() {
        let listed = |value: &[u8]| listed_code_of_head(StatusCode::OK, &headers("grpc-status", &[value]));
        assert_eq!(listed(b"14"), Some(Code::Unavailable));
        assert_eq!(listed(b"2"), Some(Code::Unknown));
        for value in [&b"17"[..], b"300", b"99999999999999999999999"] {
            assert_eq!(listed(value), None, "{value:?}");
        }
        for value in [&b""[..], b"-1", b"x", b"\xff"] {
            assert_eq!(listed(value), Some(Code::Unknown), "{value:?}");
        }
        assert_eq!(listed_code_of_head(StatusCode::OK, &HeaderMap::new()), None);
        let unavailable = StatusCode::SERVICE_UNAVAILABLE;
        assert_eq!(listed_code_of_head(unavailable, &HeaderMap::new()), Some(Code::Unavailable));
    }

    /// Neither a proxy's status nor a server's code proves that nothing was processed.
    // OUT-1, RET-7, C-12, trap 24
    #[test]
    fn no_head_is_a_proof() {
        let verdict = |status, headers: &HeaderMap| verdict_of_head(StatusCode::from_u16(status).unwrap(), headers);
        let of_code = |code: Code, kind| Some(Verdict::Transient(Failure::new(kind).with_code(code.number())));
        for status in [429, 502, 503, 504] {
            let expected = of_code(Code::Unavailable, FailureKind::Server);
            assert_eq!(verdict(status, &HeaderMap::new()), expected, "{status}");
        }
        let expected = of_code(Code::Unavailable, FailureKind::Server);
        assert_eq!(verdict(200, &headers("grpc-status", &[b"14"])), expected);
        let expected = of_code(Code::ResourceExhausted, FailureKind::Throttled);
        assert_eq!(verdict(200, &headers("grpc-status", &[b"8"])), expected);
        assert_eq!(verdict(200, &HeaderMap::new()), None);
    }

    // PB-2, PB-3, PB-9, PB-10, trap 29
    #[test]
    fn negative_or_unreadable_pushback_stops() {
        let after = |milliseconds| ServerHint::Exactly(Duration::from_millis(milliseconds));
        let rows: [(&[&[u8]], ServerHint); 14] = [
            (&[], ServerHint::None),
            (&[b"0"], after(0)),
            (&[b"1500"], after(1500)),
            (&[b"2147483647"], after(2_147_483_647)),
            (&[b"2147483648"], ServerHint::Stop),
            (&[b"-1"], ServerHint::Stop),
            (&[b"+5"], ServerHint::Stop),
            (&[b"05"], ServerHint::Stop),
            (&[b" 5"], ServerHint::Stop),
            (&[b""], ServerHint::Stop),
            (&[b"1.5"], ServerHint::Stop),
            (&[b"\xb2"], ServerHint::Stop),
            (&[b"soon"], ServerHint::Stop),
            (&[b"1", b"2"], ServerHint::Stop),
        ];
        for (values, hint) in rows {
            assert_eq!(pushback(&headers("grpc-retry-pushback-ms", values)), hint, "{values:?}");
        }
    }
}
