//! gRPC: its protocol, constructors and settings for it, its body, deadlines and service configs.

mod body;
#[cfg(feature = "tonic")]
mod channel;
mod deadline;
pub(crate) mod errors;
pub(crate) mod facts;
mod finish;
mod hedge;
mod policy;
pub(crate) mod protocol;
pub(crate) mod settings;

pub mod peek_trailers;
pub mod service_config;

pub use body::GrpcBody;
pub use protocol::Grpc;
pub use reattempt_grpc::{Code as GrpcCode, DescriptorSet, DescriptorSetError, IdempotencyLevel};
