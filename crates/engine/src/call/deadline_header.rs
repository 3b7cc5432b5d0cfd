//! Headers with the time left until a deadline, which are read from inbound requests and written to each attempt.

use std::fmt;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::deadline::Deadline;

/// The longest time in milliseconds that is written: ten digits, which is the most that Connect allows.
const MOST_MILLIS: u128 = 9_999_999_999;

/// A request header with the time left until a [`Deadline`]: its name and its format.
///
/// Outbound, [`Http::deadline_header`](crate::Http::deadline_header) writes it to each attempt. Inbound, an
/// [`InboundDeadlineLayer`](crate::deadline::InboundDeadlineLayer) reads it. The time is relative, so the clocks of two
/// machines need not agree.
///
/// | constructor | value of 2.5 s | headers with this format |
/// |---|---|---|
/// | [`envoy`](Self::envoy), [`milliseconds`](Self::milliseconds) | `2500` | `x-envoy-expected-rq-timeout-ms` (Envoy's router), `connect-timeout-ms` (the Connect protocol) |
/// | [`seconds`](Self::seconds) | `2` | `request-timeout` (draft-thomson-hybi-http-timeout-00), `x-server-timeout` (Google's GenAI clients) |
/// | [`decimal_seconds`](Self::decimal_seconds) | `2.500` | `x-server-timeout` (OR-Tools), services of your own |
///
/// The time is rounded down, so no server gets more time than there is. If less than one unit is left, the header is
/// omitted, because some servers read 0 as no limit, Envoy among them. Therefore, prefer milliseconds where you can
/// choose.
///
/// ```
/// use std::time::Duration;
/// use http::{HeaderMap, HeaderName};
/// use reattempt::Deadline;
/// use reattempt::deadline::DeadlineHeader;
///
/// # #[tokio::main(flavor = "current_thread", start_paused = true)]
/// # async fn main() {
/// let header = DeadlineHeader::seconds(HeaderName::from_static("request-timeout"));
/// let mut outbound = HeaderMap::new();
/// header.write(&mut outbound, Deadline::after(Duration::from_millis(2500)));
/// assert_eq!(outbound["request-timeout"], "2");
/// assert_eq!(header.read(&outbound), Some(Deadline::after(Duration::from_secs(2))));
/// # }
/// ```
#[derive(Clone)]
pub struct DeadlineHeader {
    name: HeaderName,
    parse: Parse,
    format: Format,
}

/// Returns the time in a value, or `None` if it is malformed.
type Parse = fn(&[u8]) -> Option<Duration>;

/// Returns the value for a time, or `None` if no value is at most as long.
type Format = fn(Duration) -> Option<HeaderValue>;

impl DeadlineHeader {
    /// Creates a header with this name, a parser and a writer of its values.
    pub(crate) fn new(name: HeaderName, parse: Parse, format: Format) -> Self {
        Self { name, parse, format }
    }

    /// Creates the header `x-envoy-expected-rq-timeout-ms`, in milliseconds. Envoy sets it for the servers behind it,
    /// and reads it from a request if its option `respect_expected_rq_timeout` is set.
    pub fn envoy() -> Self {
        Self::milliseconds(HeaderName::from_static("x-envoy-expected-rq-timeout-ms"))
    }

    /// Creates a header with whole milliseconds.
    pub fn milliseconds(name: HeaderName) -> Self {
        let parse = |value: &[u8]| digits(value).map(Duration::from_millis);
        Self::new(name, parse, |left| positive(left.as_millis().min(MOST_MILLIS)).map(written))
    }

    /// Creates a header with whole seconds. Values with decimals are read, too.
    pub fn seconds(name: HeaderName) -> Self {
        Self::new(name, decimal, |left| positive(left.as_secs().into()).map(written))
    }

    /// Creates a header with seconds and three decimals. Values with any number of decimals, or none, are read.
    pub fn decimal_seconds(name: HeaderName) -> Self {
        Self::new(name, decimal, |left| {
            positive(left.as_millis())?;
            HeaderValue::try_from(format!("{}.{:03}", left.as_secs(), left.subsec_millis())).ok()
        })
    }

    /// Returns the name of the header.
    pub fn name(&self) -> &HeaderName {
        &self.name
    }

    /// Reads the deadline from an inbound request, counted from now. Returns `None` if the header is missing or
    /// malformed.
    pub fn read(&self, headers: &HeaderMap) -> Option<Deadline> {
        (self.parse)(headers.get(&self.name)?.as_bytes()).map(Deadline::after)
    }

    /// Writes the time left, replacing any existing value. If less than one unit is left, or the map is full, it
    /// removes the header.
    pub fn write(&self, headers: &mut HeaderMap, deadline: Deadline) {
        let value = (self.format)(deadline.remaining());
        let is_written = value.is_some_and(|value| headers.try_insert(self.name.clone(), value).is_ok());
        if !is_written {
            headers.remove(&self.name);
        }
    }
}

impl fmt::Debug for DeadlineHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("DeadlineHeader").field(&self.name).finish()
    }
}

fn written(figure: u64) -> HeaderValue {
    figure.into()
}

fn positive(figure: u128) -> Option<u64> {
    u64::try_from(figure).ok().filter(|figure| *figure > 0)
}

/// Reads a number of one or more digits, without a sign.
fn digits(value: &[u8]) -> Option<u64> {
    let is_number = value.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(value).ok().filter(|_| is_number)?.parse().ok()
}

/// Reads seconds, with or without decimals. Those after the ninth are ignored.
fn decimal(value: &[u8]) -> Option<Duration> {
    let Some(point) = value.iter().position(|byte| *byte == b'.') else {
        return digits(value).map(Duration::from_secs);
    };
    let (whole, decimals) = (digits(value.get(..point)?)?, value.get(point + 1..)?);
    if decimals.is_empty() || !decimals.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let places = decimals.iter().copied().chain(std::iter::repeat(b'0')).take(9);
    let nanos = places.fold(0, |nanos, digit| nanos * 10 + u32::from(digit - b'0'));
    Some(Duration::new(whole, nanos))
}
