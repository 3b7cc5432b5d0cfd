//! The meaning of gRPC for a retry: status codes, pushback, service configs, throttling.
//!
//! The head or the trailers of a response give its status [`Code`], the verdict on it, and the delay that the
//! server asks for. A service owner writes a [`ServiceConfig`], which may ask for a [`Throttle`]. Nothing
//! here sleeps, retries or decides. No data from a peer and no text of a config can cause a panic.
//!
//! The ids of rules that the documentation cites (`PB-4`, `SC-6`) are those of `docs/RULES.md` in the repository.

#![forbid(unsafe_code)]

mod code;
mod decimal;
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
    ServiceConfigReader, UnappliedSetting,
};
pub use throttle::{Throttle, Throttling};
pub use timeout::parse_grpc_timeout;
