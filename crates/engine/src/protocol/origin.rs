//! The mapping from attempt types back to request types, which lets the compiler infer the request type.

use super::sealed;

/// The inverse of [`Replay`](super::Replay): the request type whose attempts have the type `Attempt`.
#[diagnostic::on_unimplemented(
    message = "the inner client takes requests of type `{Attempt}`, and the attempts of this layer are of another",
    note = "the body of an attempt is `reattempt::ReplayBody<B>`, so that it can be sent again",
    note = "a client's type names that body, where it is stored: `Client<_, ReplayBody<Full<Bytes>>>` in place of `Client<_, Full<Bytes>>`",
    note = "for a client of one body type, add a line below the layer: `.map_request(|attempt: Request<ReplayBody<_>>| attempt.map(Body::new))`",
    note = "for a channel of tonic, use the layer of gRPC, such as `RetryLayer::grpc()`, with the feature `tonic` of reattempt; its type is `Retry<Channel, RetryPolicy<Grpc>>`",
    note = "for `reqwest::Client` of reqwest 0.13, turn on the feature `reqwest` of reattempt",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client"
)]
#[doc(hidden)]
pub trait Origin<Attempt>: sealed::Sealed {
    /// The caller's request type.
    type Request;
}
