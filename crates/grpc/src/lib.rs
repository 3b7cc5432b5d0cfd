//! The meaning of gRPC for a retry: status codes, pushback, service configs, throttling.
//!
//! | source | result |
//! |---|---|
//! | head of a response | [`code_of_head`], [`verdict_of_head`] |
//! | trailers, or a head with a status | [`Code::from_bytes`], [`verdict_of_code`]; the delay that the server asks for by [`pushback`] or [`retry_info`] |
//! | service config of the service's owner | [`ServiceConfig`], and [`ServiceConfigHandle`] to replace it while calls run |
//! | `retryThrottling` of a service config | [`Throttle`], a retry budget |
//!
//! Nothing here sleeps or sends. The crate `reattempt` decides and retries, and re-exports these items in
//! `reattempt::grpc`. No data from a peer and no text of a config can cause a panic.
//!
//! Ids in brackets (`PB-4`, `SC-6`) are rules of `docs/RULES.md` in the repository.

#![cfg_attr(docsrs, feature(doc_cfg))]
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
    CodeSet, MethodConfig, MethodHedgingPolicy, MethodPolicy, MethodRetryPolicy, NoServiceConfig,
    ServiceConfig, ServiceConfigError, ServiceConfigErrors, ServiceConfigHandle,
    ServiceConfigReader, UnappliedSetting,
};
pub use throttle::{Throttle, Throttling};
pub use timeout::parse_grpc_timeout;
