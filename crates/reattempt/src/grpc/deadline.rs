//! The field `grpc-timeout`, which is read from inbound requests and written into each attempt.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::call::deadline::Deadline;

pub(super) const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

impl Deadline {
    /// Reads the deadline from the `grpc-timeout` field of an inbound request. The time counts from now. `None` if
    /// there is no such field, or if it cannot be read.
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

    /// Writes the time that is left into the field `grpc-timeout`, and replaces a value that is there.
    ///
    /// The unit is the finest whose figure has at most eight digits. The figure is rounded down, but to one nanosecond
    /// at least. Nothing is written to a map that is full.
    pub fn write_to(&self, headers: &mut HeaderMap) {
        let left = self.remaining();
        let units = [
            (left.as_nanos().max(1), 'n'),
            (left.as_micros(), 'u'),
            (left.as_millis(), 'm'),
            (u128::from(left.as_secs()), 'S'),
            (u128::from(left.as_secs() / 60), 'M'),
        ];
        // Some thirty years, the longest there is, fit in minutes by far.
        let fitting = units.into_iter().find(|(figure, _)| *figure <= 99_999_999);
        if let Some((figure, unit)) = fitting
            && let Ok(value) = HeaderValue::try_from(format!("{figure}{unit}"))
        {
            let _ = headers.try_insert(GRPC_TIMEOUT, value);
        }
    }
}
