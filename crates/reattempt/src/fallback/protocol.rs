//! The part of a protocol that fallbacks need: responses that can be taken apart, and requests that may go elsewhere.

use bytes::Bytes;
use http::response::Parts;
use http::{Request, Response};
use http_body::Body;

use super::FallbackBody;
use crate::call::options::CallOptions;
use crate::protocol::witness::Testimony;
use crate::protocol::{Http, Protocol};

/// A protocol whose responses of type `R`, to requests of type `Request`, can be replaced. Sealed.
#[diagnostic::on_unimplemented(
    message = "this `FallbackLayer` cannot replace a response of type `{R}`",
    note = "the response must be an `http::Response<B>` where `B: http_body::Body<Data = Bytes>`, or reqwest's with the feature `reqwest`"
)]
pub trait Replaceable<Request, R>: Protocol {
    /// The body of a response.
    type Body;
    /// The response of a call.
    type Replaced;

    /// Returns `true` if two servers may process the request. A key is no permission: a server recognises only its own.
    #[doc(hidden)]
    fn is_repeatable(&self, request: &Request, options: Option<&CallOptions>) -> bool;

    /// Returns `true` if an error can prove that a request was not processed.
    #[doc(hidden)]
    fn errors_prove(&self) -> bool;

    /// Prepares a request for the proof that nothing of it was processed: a retry layer below may have sent it before,
    /// because of its key or of options of its own, and a guard may have refused a later hop.
    #[doc(hidden)]
    fn call_witness(&self, request: &mut Request) -> Option<Testimony> {
        let _ = request;
        None
    }

    /// Takes a response apart.
    #[doc(hidden)]
    fn split(response: R) -> (Parts, Self::Body);

    /// Returns a service's response.
    #[doc(hidden)]
    fn sent(head: Parts, body: Self::Body) -> Self::Replaced;

    /// Returns a response in memory.
    #[doc(hidden)]
    fn made(head: Parts, data: Bytes) -> Self::Replaced;
}

impl<A, B: Body<Data = Bytes>> Replaceable<Request<A>, Response<B>> for Http {
    type Body = B;
    type Replaced = Response<FallbackBody<B>>;

    fn is_repeatable(&self, request: &Request<A>, options: Option<&CallOptions>) -> bool {
        let permitted = options.and_then(CallOptions::get_repeatable);
        permitted.unwrap_or_else(|| request.method().is_idempotent())
    }

    /// A connection that failed may be one to the target of a redirect, after the first server has done the work.
    fn errors_prove(&self) -> bool {
        self.redirects == Some(false)
    }

    fn call_witness(&self, request: &mut Request<A>) -> Option<Testimony> {
        Some(Testimony::call(request.extensions_mut()))
    }

    fn split(response: Response<B>) -> (Parts, B) {
        response.into_parts()
    }

    fn sent(head: Parts, body: B) -> Self::Replaced {
        Response::from_parts(head, FallbackBody::of_service(body))
    }

    fn made(head: Parts, data: Bytes) -> Self::Replaced {
        Response::from_parts(head, FallbackBody::in_memory(data, None))
    }
}
