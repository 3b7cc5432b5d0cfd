//! Balanced clients for several servers of a gRPC service.

use reattempt_engine::error::Answered;
use reattempt_engine::grpc::Grpc;

use crate::{Balanced, Endpoints, Source};

impl<S: Source> Endpoints<S> {
    /// Creates a gRPC client with the defaults of [`Grpc`], for tonic's channels and any other HTTP/2 client. Use it in
    /// place of a channel in a generated client.
    pub fn grpc(self) -> Balanced<S::Client, Grpc, Answered> {
        self.with(Grpc::new())
    }
}
