//! gRPC for retries: status codes, pushback, service configs and throttling.
//!
//! | source | result |
//! |---|---|
//! | a response head | [`code_of_head`], [`verdict_of_head`] |
//! | trailers, or a response head with a status | [`Code::from_bytes`], [`verdict_of_code`]; the server's delay from [`pushback`] or [`retry_info`] |
//! | a service config from the service's owner | [`ServiceConfig`], and [`ServiceConfigHandle`] to replace it while calls are in flight |
//! | a `FileDescriptorSet`, as protoc, tonic-build and buf write it | [`DescriptorSet`], the methods that may be repeated |
//! | `retryThrottling` in a service config | [`RetryThrottle`], a retry budget |
//!
//! ```
//! use reattempt_grpc::{Code, MethodPolicy, ServiceConfig};
//!
//! let config = ServiceConfig::parse(
//!     r#"{"methodConfig": [{
//!         "name": [{"service": "stock.Prices"}],
//!         "retryPolicy": {
//!             "maxAttempts": 4,
//!             "initialBackoff": "0.1s",
//!             "maxBackoff": "5s",
//!             "backoffMultiplier": 2,
//!             "retryableStatusCodes": ["UNAVAILABLE"]
//!         }
//!     }]}"#,
//! )?;
//! let method = config.for_method("/stock.Prices/Get").ok_or("a method of the service")?;
//! let MethodPolicy::Retry(policy) = &method.policy else { return Err("retries".into()) };
//! assert!(policy.retryable_codes().contains(Code::Unavailable));
//! assert_eq!(policy.max_attempts(), 4);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When to use it alone
//!
//! Use it to read or check service configs, or to apply gRPC's retry rules in your own client. Nothing in this crate
//! sleeps or sends requests. No data from a peer or a config can cause a panic. The crate `reattempt` makes the retry
//! decisions, and re-exports these items in `reattempt::grpc`.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]

mod code;
mod decimal;
mod descriptors;
mod details;
mod head;
mod service_config;
mod throttle;
mod timeout;

pub use code::{Code, verdict_of_code};
pub use descriptors::{DescriptorSet, DescriptorSetError, IdempotencyLevel, Malformed};
pub use details::{GRPC_STATUS_DETAILS_BIN, remove_unreadable_details, retry_info};
pub use head::{
    GRPC_MESSAGE, GRPC_RETRY_PUSHBACK_MS, GRPC_STATUS, code_of_head, listed_code_of_head, pushback, verdict_of_head,
};
pub use service_config::{
    CodeSet, MethodConfig, MethodHedgingPolicy, MethodPolicy, MethodRetryPolicy, NoServiceConfig, ServiceConfig,
    ServiceConfigError, ServiceConfigErrors, ServiceConfigHandle, ServiceConfigReader, UnappliedSetting,
};
pub use throttle::{RetryThrottle, RetryThrottling};
pub use timeout::parse_grpc_timeout;
