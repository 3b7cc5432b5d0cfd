//! The `grpc-timeout` header, which is read from inbound requests and written to each attempt.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::call::deadline::Deadline;
use crate::deadline::{DeadlineHeader, InboundDeadlineLayer};

pub(super) const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

impl Deadline {
    /// Reads the deadline from an inbound request's `grpc-timeout` header, counted from now. Returns `None` if the
    /// header is missing or malformed.
    ///
    /// ```
    /// use std::time::Duration;
    /// use http::Request;
    /// use reattempt::Deadline;
    ///
    /// let inbound = Request::builder().header("grpc-timeout", "1500m").body(()).unwrap();
    /// let deadline = Deadline::from_headers(inbound.headers()).unwrap();
    /// assert!(deadline.remaining() <= Duration::from_millis(1500));
    /// ```
    #[inline]
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(&GRPC_TIMEOUT)?;
        reattempt_grpc::parse_grpc_timeout(value.as_bytes()).map(Self::after)
    }

    /// Writes the time left to the `grpc-timeout` header, replacing any existing value.
    ///
    /// The unit is the finest one for which the number has at most eight digits. The number is rounded down, but
    /// never below one nanosecond. If the map is full, nothing is written.
    pub fn write_to(&self, headers: &mut HeaderMap) {
        if let Some(value) = format(self.remaining()) {
            let _ = headers.try_insert(GRPC_TIMEOUT, value);
        }
    }
}

/// Returns the value for a time.
fn format(left: Duration) -> Option<HeaderValue> {
    let units = [
        (left.as_nanos().max(1), 'n'),
        (left.as_micros(), 'u'),
        (left.as_millis(), 'm'),
        (u128::from(left.as_secs()), 'S'),
        (u128::from(left.as_secs() / 60), 'M'),
    ];
    // The longest time, about thirty years, always fits in minutes.
    let (figure, unit) = units.into_iter().find(|(figure, _)| *figure <= 99_999_999)?;
    HeaderValue::try_from(format!("{figure}{unit}")).ok()
}

impl InboundDeadlineLayer {
    /// Creates a layer that reads `grpc-timeout`. For tonic, add it with `Server::builder().layer(…)`. A method gets
    /// the inbound extensions from `request.extensions()`.
    pub fn grpc() -> Self {
        Self::new(DeadlineHeader::new(GRPC_TIMEOUT, reattempt_grpc::parse_grpc_timeout, format))
    }
}
