//! A deadline that travels with a request.

mod inbound;

use std::time::Duration;

use http::{Extensions, HeaderMap, HeaderName, HeaderValue};
use tokio::time::Instant;

use crate::clock;

pub use inbound::{InboundDeadline, InboundDeadlineLayer};

/// What is said of a call that its deadline has ended.
pub(crate) const PASSED: &str = "the deadline of the call has passed";

pub(crate) const GRPC_TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");

/// The moment by which a call must be over.
///
/// Put it into the extensions of a request, or into [`CallOptions`](crate::CallOptions): a retry
/// whose delay would pass it is not made. A policy for gRPC ends the call there, as does one that
/// [interrupts](crate::RetryPolicy::attempt_timeout). Every attempt finds it in its extensions, and over
/// gRPC its `grpc-timeout` is what is left at that moment. A server [hands on](Self::propagate) the deadline
/// of a call to the calls it makes for it; [`InboundDeadlineLayer`] finds that.
///
/// ```
/// use std::time::Duration;
/// use http::Request;
/// use reattempt::Deadline;
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

    /// Hands an inbound call's deadline on to an outbound one, if it has any: from extensions to
    /// extensions. Of a deadline that is there already and this one the earlier stays.
    ///
    /// It is carried by the requests alone, and not by the task: so it follows a handler that spawns or
    /// sends from another task, it costs nothing where nobody asks for it, and what a handler starts in
    /// passing, to go on after its caller has the answer, is not cut short unless it says so.
    ///
    /// ```
    /// use http::Request;
    /// use reattempt::Deadline;
    /// # fn handle(inbound: Request<()>) {
    /// let mut outbound = Request::new(());
    /// Deadline::propagate(inbound.extensions(), outbound.extensions_mut());
    /// # }
    /// ```
    ///
    /// For a client whose requests have no extensions (reqwest's): put the inbound one into
    /// [`CallOptions::deadline`](crate::CallOptions::deadline) of a handle.
    pub fn propagate(inbound: &Extensions, outbound: &mut Extensions) {
        let inbound = inbound.get::<Self>();
        if let Some(earliest) = inbound.into_iter().chain(outbound.get()).min().copied() {
            outbound.insert(earliest);
        }
    }

    /// Writes what is left into `grpc-timeout`, replacing what is there: in the finest unit whose
    /// figure fits the field's eight digits, rounded down, but at least one nanosecond.
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
            headers.insert(GRPC_TIMEOUT, value);
        }
    }

    /// The time left; zero once it has passed.
    pub fn remaining(&self) -> Duration {
        self.0.saturating_duration_since(Instant::now())
    }

    pub(crate) fn at(instant: Instant) -> Self {
        Self(instant)
    }

    pub(crate) fn instant(self) -> Instant {
        self.0
    }
}
