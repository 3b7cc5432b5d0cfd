//! Load shedding in front of gRPC services.

use std::error::Error;

use http::{HeaderMap, HeaderValue, Response};
use http_body::Body;
use reattempt_core::Verdict;
use reattempt_core::guard::{Guard, Refused};
use reattempt_engine::error::Answered;
use reattempt_engine::grpc::Grpc;
use reattempt_engine::wall::grpc::PREVIOUS_ATTEMPTS;
use reattempt_grpc::{Code, GRPC_RETRY_PUSHBACK_MS};
use tower::BoxError;

use super::protocol::number;
use super::{Gauge, ShedLayer, ShedProtocol};
use crate::GuardLayer;
use crate::contract::GuardOutcome;
use crate::grpc::REFUSED_BY;

impl<G: Guard> ShedLayer<G, Grpc, Answered> {
    /// Creates a layer that protects a gRPC server. For tonic, add it with `Server::builder().layer(…)`.
    ///
    /// A refusal has the code RESOURCE_EXHAUSTED or UNAVAILABLE, as with [`GuardLayer::grpc`], and its delay is sent as
    /// `grpc-retry-pushback-ms`. The delay asks for a retry of any call, because the refused call was not processed. A
    /// pushback of −1 stops clients from retrying. A call counts as a retry if its
    /// `grpc-previous-rpc-attempts` is above 0.
    ///
    /// An adaptive limit reacts to UNAVAILABLE as it does to 503. A call that ends with RESOURCE_EXHAUSTED or
    /// DEADLINE_EXCEEDED is recorded as served.
    ///
    /// A call holds its place until its trailers are sent, even with a guard that releases places at the response head.
    /// Limit the duration of streams from untrusted callers.
    ///
    /// ```
    /// use reattempt::guard::AdaptiveLimit;
    /// use reattempt::shed::ShedLayer;
    /// use tower::ServiceBuilder;
    ///
    /// let layer = ShedLayer::grpc(AdaptiveLimit::gradient2());
    /// let builder = ServiceBuilder::new().layer(layer);
    /// ```
    pub fn grpc(guard: G) -> Self {
        // The caller exceeded its quota or allowed too little time, so the server is not at fault.
        let grpc = Grpc::new()
            .destination(|_| "".into())
            .on_code(Code::ResourceExhausted, Verdict::Success)
            .on_code(Code::DeadlineExceeded, Verdict::Success);
        Self::new(GuardLayer::with(grpc, guard))
    }
}

impl<B, E> ShedProtocol<Response<B>, E, Answered> for Grpc
where
    B: Body<Error: Into<BoxError>>,
    E: Error + 'static,
{
    type Shed<G: Guard> = <Self as GuardOutcome<Response<B>, E, Answered>>::Guarded<G>;

    fn is_retry(headers: &HeaderMap) -> bool {
        number(headers, PREVIOUS_ATTEMPTS).is_some_and(|previous| previous > 0)
    }

    fn shed<G: Guard>(result: Result<Self::Shed<G>, E>, gauge: &Gauge) -> Result<Self::Shed<G>, E> {
        let mut response = result?;
        let Some(refused) = response.extensions().get::<Refused>().copied() else {
            gauge.record_end();
            return Ok(response);
        };
        let advice = gauge.advise(&refused);
        let pushback = match advice.stop {
            true => HeaderValue::from_static("-1"),
            false => u32::try_from(advice.after.as_millis()).unwrap_or(u32::MAX).into(),
        };
        response.headers_mut().insert(GRPC_RETRY_PUSHBACK_MS, pushback);
        // This header is only for refusals by a client's guard.
        response.headers_mut().remove(REFUSED_BY);
        Ok(response)
    }
}
