//! The standard stack for gRPC.

use reattempt_engine::RetryPolicy;
use reattempt_engine::grpc::Grpc;

use super::{StandardGuards, StandardLayer};

impl StandardLayer<StandardGuards, RetryPolicy<Grpc>> {
    /// Creates the stack for gRPC calls. A client `C` inside the stack has the type [`StandardClient<C,
    /// Grpc>`](super::StandardClient).
    ///
    /// ```
    /// use reattempt::standard::StandardLayer;
    /// use tower::ServiceBuilder;
    ///
    /// let builder = ServiceBuilder::new().layer(StandardLayer::grpc());
    /// ```
    pub fn grpc() -> Self {
        Self::new(RetryPolicy::grpc())
    }
}
