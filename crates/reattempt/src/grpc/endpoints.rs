//! Balanced clients for several servers of a gRPC service.

use super::Grpc;
use crate::endpoints::{Balanced, Endpoints, Source};
use crate::error_mode::Answered;

impl<S: Source> Endpoints<S> {
    /// Creates a gRPC client with the defaults of [`Grpc`], for tonic's channels and any other HTTP/2 client. Use it in
    /// place of a channel in a generated client.
    pub fn grpc(self) -> Balanced<S::Client, Grpc, Answered> {
        self.with(Grpc::new())
    }
}
