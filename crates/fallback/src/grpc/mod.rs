//! Fallbacks for gRPC calls: an in-memory message, or another channel.

#[cfg(feature = "tonic")]
mod backup;

use bytes::{BufMut, Bytes, BytesMut};
use http::header::CONTENT_TYPE;
use http::response::Parts;
use http::{HeaderMap, HeaderValue, Response};
use http_body::Body;
use reattempt_engine::grpc::Grpc;
use reattempt_engine::wall::grpc::grpc_setters;
use reattempt_engine::wall::protocol_setters;
use reattempt_grpc::{Code, GRPC_STATUS};

use crate::{Failed, FallbackBody, FallbackLayer, Replaceable};

impl<F: Fn(&Failed) -> Option<Response<Bytes>>> FallbackLayer<F, Grpc> {
    /// Creates a layer that replaces failed gRPC calls with a function's response, which contains one encoded message.
    ///
    /// If the function's response has a `grpc-status` in its headers, the call ends with that status and without a
    /// message. Once a server's response has begun, it is not replaced, however it ends.
    ///
    /// ```
    /// use bytes::Bytes;
    /// use http::Response;
    /// use reattempt::RetryLayer;
    /// use reattempt::fallback::FallbackLayer;
    /// use tower::ServiceBuilder;
    ///
    /// // An empty message, in which every field has its default.
    /// let nothing = |_: &_| Some(Response::new(Bytes::new()));
    /// let builder = ServiceBuilder::new()
    ///     .layer(FallbackLayer::grpc(nothing))
    ///     .layer(RetryLayer::grpc());
    /// ```
    pub fn grpc(make: F) -> Self {
        Self::with(Grpc::new(), make)
    }
}

impl<B: Body<Data = Bytes>> Replaceable<Response<B>> for Grpc {
    type Body = B;
    type Replaced = Response<FallbackBody<B>>;

    fn split(response: Response<B>) -> (Parts, B) {
        response.into_parts()
    }

    fn from_service(head: Parts, body: B) -> Self::Replaced {
        Response::from_parts(head, FallbackBody::of_service(body))
    }

    fn from_memory(mut head: Parts, message: Bytes) -> Self::Replaced {
        head.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static("application/grpc"));
        let body = match head.headers.contains_key(GRPC_STATUS) {
            true => FallbackBody::default(),
            false => {
                let status = HeaderMap::from_iter([(GRPC_STATUS, Code::Ok.number().into())]);
                FallbackBody::in_memory(framed(&message), Some(status))
            }
        };
        Response::from_parts(head, body)
    }
}

/// Returns an uncompressed message with its length prefix.
fn framed(message: &Bytes) -> Bytes {
    let mut frame = BytesMut::with_capacity(5 + message.len());
    frame.put_u8(0);
    frame.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    frame.extend_from_slice(message);
    frame.freeze()
}

/// The gRPC settings that affect fallbacks.
impl<F> FallbackLayer<F, Grpc> {
    protocol_setters!(Grpc: reading, sending, proving);
    grpc_setters!(safety, codes);
}
