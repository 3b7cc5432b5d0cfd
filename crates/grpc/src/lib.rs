//! What gRPC means to a retry.
//!
//! What flows in: the head or the trailers of a response. What flows out: its status [`Code`], the
//! verdict on it and the wait that the server asks for. Beside that stand what a service owner writes, the
//! [`ServiceConfig`], and the [`Throttle`] that it may ask for. Nothing here sleeps, retries or decides.
//! Neither peer data nor the text of a config ever panics.
//!
//! The ids of rules that the documentation cites (`PB-4`, `SC-6`) are those of `docs/RULES.md` in the repository.

#![forbid(unsafe_code)]

mod code;
mod details;
mod head;
mod service_config;
mod throttle;
mod timeout;

pub use code::{Code, verdict_of_code};
pub use details::{GRPC_STATUS_DETAILS_BIN, remove_unreadable_details, retry_info};
pub use head::{
    GRPC_MESSAGE, GRPC_RETRY_PUSHBACK_MS, GRPC_STATUS, code_of_head, listed_code_of_head, pushback,
    verdict_of_head,
};
pub use service_config::{
    CodeSet, HedgingPolicy, MethodConfig, MethodPolicy, NoServiceConfig, RetryPolicy,
    ServiceConfig, ServiceConfigError, ServiceConfigErrors, ServiceConfigHandle,
    ServiceConfigReader, Throttling,
};
pub use throttle::Throttle;
pub use timeout::parse_grpc_timeout;
