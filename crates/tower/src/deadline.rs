//! A deadline that travels with a request.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use crate::clock;

const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The moment by which a call must be over.
///
/// Put it into the extensions of a request, or into [`CallOptions`](crate::CallOptions): a retry
/// whose delay would pass it is not made, and a policy that
/// [interrupts](crate::RetryPolicy::attempt_timeout) ends the call there. A server hands an inbound
/// deadline on by putting the same value into its outbound requests; every attempt finds it in its
/// extensions.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use reattempt_tower::Deadline;
///
/// let inbound = Request::builder().header("grpc-timeout", "1500m").body(()).unwrap();
/// let deadline = Deadline::from_headers(inbound.headers()).unwrap();
/// assert!(deadline.remaining() <= Duration::from_millis(1500));
///
/// let mut outbound = Request::new(());
/// outbound.extensions_mut().insert(deadline);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Deadline(Instant);

impl Deadline {
    /// The deadline this long from now, by tokio's clock; at most some thirty years.
    pub fn after(timeout: Duration) -> Self {
        Self(clock::later(Instant::now(), timeout))
    }

    /// Reads an inbound `grpc-timeout` field, counted from now; `None` when there is none that can
    /// be read.
    pub fn from_headers(headers: &HeaderMap) -> Option<Self> {
        let value = headers.get(&GRPC_TIMEOUT)?;
        reattempt_grpc::parse_grpc_timeout(value.as_bytes()).map(Self::after)
    }

    /// Writes what is left into `grpc-timeout`, in whole milliseconds rounded down, replacing what
    /// is there.
    pub fn write_to(&self, headers: &mut HeaderMap) {
        // Eight digits is what the field can hold: past 27 hours the figure is cut, never raised.
        let left = self.remaining().as_millis().min(99_999_999);
        if let Ok(value) = HeaderValue::try_from(format!("{left}m")) {
            headers.insert(GRPC_TIMEOUT, value);
        }
    }

    /// The time left; zero once it has passed.
    pub fn remaining(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub(crate) fn instant(self) -> Instant {
        self.0
    }
}
