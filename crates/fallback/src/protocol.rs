//! The part of a protocol that lets fallbacks split and rebuild responses.

use bytes::Bytes;
use http::Response;
use http::response::Parts;
use http_body::Body;
use reattempt_engine::Http;
use reattempt_engine::protocol::RequestProtocol;

use super::FallbackBody;

/// A protocol whose responses of type `R` can be replaced. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "this `FallbackLayer` cannot replace a response of type `{R}`",
    note = "the response must be an `http::Response<B>` where `B: http_body::Body<Data = Bytes>`, or that of reqwest 0.13 with the feature `reqwest` of reattempt",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client"
)]
pub trait Replaceable<R>: RequestProtocol {
    /// The response body.
    type Body;
    /// The response type of a call.
    type Replaced;

    /// Splits a response into its head and body.
    #[doc(hidden)]
    fn split(response: R) -> (Parts, Self::Body);

    /// Creates the response of a call from a service's response.
    #[doc(hidden)]
    fn from_service(head: Parts, body: Self::Body) -> Self::Replaced;

    /// Creates the response of a call from data in memory.
    #[doc(hidden)]
    fn from_memory(head: Parts, data: Bytes) -> Self::Replaced;
}

impl<B: Body<Data = Bytes>> Replaceable<Response<B>> for Http {
    type Body = B;
    type Replaced = Response<FallbackBody<B>>;

    fn split(response: Response<B>) -> (Parts, B) {
        response.into_parts()
    }

    fn from_service(head: Parts, body: B) -> Self::Replaced {
        Response::from_parts(head, FallbackBody::of_service(body))
    }

    fn from_memory(head: Parts, data: Bytes) -> Self::Replaced {
        Response::from_parts(head, FallbackBody::in_memory(data, None))
    }
}
