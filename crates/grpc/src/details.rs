//! The delay in the field `grpc-status-details-bin`: a `RetryInfo` within a base64-encoded `google.rpc.Status`.
//!
//! The parser covers only the parts of the protobuf format that these two messages need. No bytes from a peer can make
//! it panic.

use std::time::Duration;

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::{HeaderMap, HeaderName};

/// The header with the details of a status, in base64.
pub const GRPC_STATUS_DETAILS_BIN: HeaderName = HeaderName::from_static("grpc-status-details-bin");

const RETRY_INFO: &str = "type.googleapis.com/google.rpc.RetryInfo";

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Returns the delay from the `google.rpc.RetryInfo` in a status's details.
///
/// Returns `None` if the details contain no delay or a negative one, or cannot be parsed.
///
/// ```
/// use std::time::Duration;
/// use http::HeaderMap;
/// use reattempt_grpc::retry_info;
///
/// // UNAVAILABLE, with a RetryInfo of 1.5 s.
/// let details = "CA4aNgoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLlJldHJ5SW5mbxIKCggIARCAyrXuAQ";
/// let headers = HeaderMap::from_iter([("grpc-status-details-bin".parse()?, details.parse()?)]);
/// assert_eq!(retry_info(&headers), Some(Duration::from_millis(1500)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
// RI-1, RI-4
pub fn retry_info(headers: &HeaderMap) -> Option<Duration> {
    let status = BASE64.decode(headers.get(GRPC_STATUS_DETAILS_BIN)?.as_bytes()).ok()?;
    // google.rpc.Status: details = 3, each an Any: type_url = 1, value = 2. A truncated message is ignored.
    let all: Option<Vec<DetailField<'_>>> = Fields(&status).collect();
    all?.into_iter().filter_map(|field| field.bytes(3)).find_map(delay_of)
}

/// Returns the delay from an `Any`, if it is a `RetryInfo` (retry_delay = 1, a Duration).
fn delay_of(any: &[u8]) -> Option<Duration> {
    let (mut name, mut info) = (&[][..], &[][..]);
    for field in Fields(any) {
        let field = field?;
        name = field.bytes(1).unwrap_or(name);
        info = field.bytes(2).unwrap_or(info);
    }
    if name != RETRY_INFO.as_bytes() {
        return None;
    }
    let mut delay = None;
    for field in Fields(info) {
        delay = field?.bytes(1).or(delay);
    }
    // Duration: seconds = 1, nanos = 2.
    let (mut seconds, mut nanos) = (0, 0);
    for field in Fields(delay?) {
        let field = field?;
        seconds = field.number(1).unwrap_or(seconds);
        nanos = field.number(2).unwrap_or(nanos);
    }
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000)?;
    u64::try_from(seconds).ok().map(|seconds| Duration::new(seconds, nanos))
}

/// Removes `grpc-status-details-bin` if any of its values is not base64. Returns `true` if it was removed.
///
/// tonic's `Status::from_header_map` panics on such a value.
// TN-7
pub fn remove_unreadable_details(headers: &mut HeaderMap) -> bool {
    let unreadable =
        headers.get_all(GRPC_STATUS_DETAILS_BIN).iter().any(|value| BASE64.decode(value.as_bytes()).is_err());
    if unreadable {
        headers.remove(GRPC_STATUS_DETAILS_BIN);
    }
    unreadable
}

/// One field of a message.
struct DetailField<'a> {
    number: u64,
    value: DetailValue<'a>,
}

enum DetailValue<'a> {
    Number(i64),
    Bytes(&'a [u8]),
    /// A value of a wire type that these messages do not use.
    Other,
}

impl<'a> DetailField<'a> {
    fn bytes(&self, number: u64) -> Option<&'a [u8]> {
        match self.value {
            DetailValue::Bytes(bytes) if self.number == number => Some(bytes),
            _ => None,
        }
    }

    fn number(&self, number: u64) -> Option<i64> {
        match self.value {
            DetailValue::Number(value) if self.number == number => Some(value),
            _ => None,
        }
    }
}

/// An iterator over the fields of a message. A malformed field yields `None` and ends the iteration.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Option<DetailField<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = field(&mut self.0);
        if field.is_none() {
            self.0 = &[];
        }
        Some(field)
    }
}

fn field<'a>(rest: &mut &'a [u8]) -> Option<DetailField<'a>> {
    let tag = varint(rest)?;
    let value = match tag & 7 {
        0 => DetailValue::Number(varint(rest)?.cast_signed()),
        1 => take(rest, 8).map(|_| DetailValue::Other)?,
        2 => {
            let length = usize::try_from(varint(rest)?).ok()?;
            DetailValue::Bytes(take(rest, length)?)
        }
        5 => take(rest, 4).map(|_| DetailValue::Other)?,
        _ => return None,
    };
    Some(DetailField { number: tag >> 3, value })
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for place in 0..10 {
        let (&byte, left) = rest.split_first()?;
        *rest = left;
        value |= u64::from(byte & 0x7f) << (7 * place);
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}
