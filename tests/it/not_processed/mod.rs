//! Proofs that a request was not processed, tested by counting the POSTs that reach their handler.

mod grpc_statuses;
mod redirects;
mod refused_stream;
mod waiting;
use crate::support;
