//! The part of a protocol that creates responses for refused calls.

use std::convert::Infallible;

use http::header::RETRY_AFTER;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use http_body::Body;
use reattempt_core::guard::{Guard, GuardKind, Refused};
use reattempt_engine::Http;
use reattempt_engine::error::{BoxedError, ErrorMode};
use reattempt_engine::fallback::FallbackBody;

use super::Gauge;
use crate::GuardedBody;
use crate::contract::GuardOutcome;

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("retry-after-ms");
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

const ATTEMPT_COUNT: HeaderName = HeaderName::from_static("x-envoy-attempt-count");

/// Returns the number in a header field.
pub(crate) fn number(headers: &HeaderMap, field: HeaderName) -> Option<u32> {
    headers.get(field)?.to_str().ok()?.parse().ok()
}

/// A protocol in which a server can refuse a call. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "this `ShedLayer` cannot answer for a service whose response is `{R}` and whose error is `{E}`",
    note = "`ShedLayer::http(…)` is for services whose response is an `http::Response<B>` where `B: http_body::Body<Data = Bytes>`, and whose error is `Infallible`, as axum's"
)]
pub trait ShedProtocol<R, E, Mode>: GuardOutcome<R, E, Mode>
where
    Mode: ErrorMode<E>,
{
    /// The response of a server that sheds load.
    type Shed<G: Guard>;

    /// Returns `true` if the headers mark a request as a retry.
    #[doc(hidden)]
    fn is_retry(headers: &HeaderMap) -> bool {
        number(headers, ATTEMPT_COUNT).is_some_and(|attempt| attempt > 1)
    }

    /// Returns the response to a call: the service's own, or a refusal.
    #[doc(hidden)]
    fn shed<G: Guard>(result: Result<Self::Guarded<G>, Mode::Error>, gauge: &Gauge) -> Result<Self::Shed<G>, E>;
}

impl<B: Body<Data = bytes::Bytes>> ShedProtocol<Response<B>, Infallible, BoxedError> for Http {
    type Shed<G: Guard> = Response<FallbackBody<GuardedBody<B, G>>>;

    fn shed<G: Guard>(
        result: Result<Self::Guarded<G>, tower::BoxError>,
        gauge: &Gauge,
    ) -> Result<Self::Shed<G>, Infallible> {
        let error = match result {
            Ok(response) => {
                gauge.record_end();
                return Ok(response.map(FallbackBody::of_service));
            }
            Err(error) => error,
        };
        let mut response = Response::new(FallbackBody::default());
        let Some(refused) = error.downcast_ref::<Refused>() else {
            // The service is infallible, so the only other error is a timeout.
            *response.status_mut() = StatusCode::GATEWAY_TIMEOUT;
            return Ok(response);
        };
        *response.status_mut() = match refused.guard() {
            GuardKind::RATE_LIMIT => StatusCode::TOO_MANY_REQUESTS,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        let advice = gauge.advise(refused);
        let milliseconds = u64::try_from(advice.after.as_millis()).unwrap_or(u64::MAX);
        let headers = response.headers_mut();
        headers.insert(RETRY_AFTER, milliseconds.div_ceil(1000).into());
        headers.insert(RETRY_AFTER_MS, milliseconds.into());
        if advice.stop {
            headers.insert(SHOULD_RETRY, HeaderValue::from_static("false"));
        }
        response.extensions_mut().insert(*refused);
        Ok(response)
    }
}
