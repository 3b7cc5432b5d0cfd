//! The load report in a response's headers or trailers, in the forms of the Open Request Cost Aggregation (ORCA).
//!
//! The parser covers only the fields that a weight needs. No bytes from a server can make it panic.

use base64::Engine;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use http::HeaderMap;

/// The field with a base64-encoded `xds.data.orca.v3.OrcaLoadReport`, mostly a trailer.
const BINARY: &str = "endpoint-load-metrics-bin";
/// The field whose value begins with its format: `TEXT`, `BIN` or `JSON`.
const PREFIXED: &str = "endpoint-load-metrics";

/// The length of the longest value that is read, in bytes.
const LONGEST: usize = 4096;

/// The weights that are used. The sum of those of all endpoints stays finite, and so does the ratio of any two.
const WEIGHTS: std::ops::RangeInclusive<f64> = 1e-9..=1e15;

/// Base64 with or without padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A server's load. A value that is absent or unusable is 0.
#[derive(Debug, Default)]
pub(super) struct LoadReport {
    cpu_utilization: f64,
    application_utilization: f64,
    queries_per_second: f64,
    errors_per_second: f64,
}

impl LoadReport {
    /// Returns the report in these headers or trailers. Returns `None` if there is none, or one that cannot be read.
    pub(super) fn read(fields: &HeaderMap) -> Option<Self> {
        let value = |name| fields.get(name).map(http::HeaderValue::as_bytes).filter(|value| value.len() <= LONGEST);
        if let Some(value) = value(BINARY) {
            return Self::decode_base64(value);
        }
        let value = value(PREFIXED)?;
        match value.split_at_checked(5)? {
            (b"TEXT ", text) => Self::parse(std::str::from_utf8(text).ok()?),
            _ => Self::decode_base64(value.strip_prefix(b"BIN ")?),
        }
    }

    /// Parses pairs such as `cpu_utilization=0.3,rps_fractional=100`. Envoy also accepts a colon in place of `=`.
    fn parse(text: &str) -> Option<Self> {
        let mut report = Self::default();
        for pair in text.split(',') {
            let (name, value) = pair.split_once(['=', ':'])?;
            let value = value.trim().parse().ok()?;
            match name.trim() {
                "cpu_utilization" => report.set(1, value),
                "rps_fractional" => report.set(6, value),
                "eps" => report.set(7, value),
                "application_utilization" => report.set(9, value),
                _ => {}
            }
        }
        Some(report)
    }

    fn decode_base64(value: &[u8]) -> Option<Self> {
        let mut message = [0; LONGEST / 4 * 3];
        let length = BASE64.decode_slice(value, &mut message).ok()?;
        Self::decode(message.get(..length)?)
    }

    /// Decodes a protobuf message. Fields of other types and numbers are skipped.
    fn decode(mut rest: &[u8]) -> Option<Self> {
        let mut report = Self::default();
        while !rest.is_empty() {
            let tag = varint(&mut rest)?;
            let length = match tag & 7 {
                0 => varint(&mut rest).map(|_| 0)?,
                1 => {
                    report.set(tag >> 3, f64::from_le_bytes(*rest.first_chunk()?));
                    8
                }
                2 => usize::try_from(varint(&mut rest)?).ok()?,
                5 => 4,
                _ => return None,
            };
            rest = rest.get(length..)?;
        }
        Some(report)
    }

    /// Sets the field of this number in the protobuf message.
    fn set(&mut self, number: u64, value: f64) {
        let field = match number {
            1 => &mut self.cpu_utilization,
            6 => &mut self.queries_per_second,
            7 => &mut self.errors_per_second,
            9 => &mut self.application_utilization,
            _ => return,
        };
        *field = if value.is_finite() && value > 0.0 { value } else { 0.0 };
    }

    /// Returns the weight by gRFC A58, or `None` if the report has no utilization or no rate.
    pub(super) fn weight(&self) -> Option<f64> {
        let is_reported = self.application_utilization > 0.0;
        let utilization = if is_reported { self.application_utilization } else { self.cpu_utilization };
        let error_rate = self.errors_per_second / self.queries_per_second;
        // Without a rate, this is 0 or not a number.
        let weight = self.queries_per_second / (utilization + error_rate);
        (utilization > 0.0 && WEIGHTS.contains(&weight)).then_some(weight)
    }
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let length = rest.iter().take(10).position(|byte| *byte < 0x80)? + 1;
    let (bytes, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(bytes.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f)))
}
