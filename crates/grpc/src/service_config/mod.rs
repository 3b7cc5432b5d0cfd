//! The service config: the JSON document in which a service's owner sets retries, hedging, deadlines and throttling.
//!
//! A [`ServiceConfig`] is parsed from a string, a reader or a file, and contains the policy for each method. If the
//! document is invalid, all its errors are returned, each with its JSON path. A [`ServiceConfigHandle`] holds the
//! config in force. This module neither watches files nor resolves names.

mod code_set;
mod duration;
mod errors;
mod handle;
mod inspect;
mod json;
mod method;
mod reader;
mod unapplied;

use std::cmp::Ordering;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use crate::throttle::RetryThrottling;
use std::{fs, io};

pub use code_set::CodeSet;
pub use errors::{ServiceConfigError, ServiceConfigErrors};
pub use handle::{NoServiceConfig, ServiceConfigHandle};
pub use method::{MethodConfig, MethodHedgingPolicy, MethodPolicy, MethodRetryPolicy};
pub use unapplied::UnappliedSetting;

/// The policies for a service's methods, and their shared throttling.
///
/// The fields `methodConfig` and `retryThrottling` are read. If any value in them breaks a rule, the whole document is
/// rejected, and [`ServiceConfigErrors`] lists every such value. A `null` field is treated as absent. `{}` is a
/// valid config without policies.
///
/// All other fields are ignored. `loadBalancingConfig`, `loadBalancingPolicy` and `healthCheckConfig` belong to
/// the channel. No published rule defines `perAttemptRecvTimeout`. A list of choices, as found in a DNS record
///, is not accepted as a service config.
///
/// The rules leave some cases open. The following are errors here:
///
/// - a field or a name given twice;
/// - both policies for one method;
/// - OK among the codes;
/// - a negative timeout or delay;
/// - a number in quotes, unless [`lenient`](Self::lenient);
/// - a duration such as `".5s"`, whose number is not valid JSON, unless [`lenient`](Self::lenient).
///
/// ```
/// # use reattempt_grpc::{Code, MethodPolicy, ServiceConfig};
///
/// let config = ServiceConfig::parse(
///     r#"{
///       "methodConfig": [{
///         "name": [{ "service": "inventory.Stock" }],
///         "timeout": "2.5s",
///         "retryPolicy": {
///           "maxAttempts": 4,
///           "initialBackoff": "0.1s",
///           "maxBackoff": "1s",
///           "backoffMultiplier": 2,
///           "retryableStatusCodes": ["UNAVAILABLE"]
///         }
///       }],
///       "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
///     }"#,
/// )?;
/// let method = config.for_method("/inventory.Stock/Count").unwrap();
/// let MethodPolicy::Retry(policy) = &method.policy else { unreachable!() };
/// assert_eq!(policy.max_attempts(), 4);
/// assert!(policy.retryable_codes().contains(Code::Unavailable));
/// assert!(config.for_method("/billing.Invoices/Send").is_none());
/// # Ok::<(), reattempt_grpc::ServiceConfigErrors>(())
/// ```
// SC-5, SC-9, DL-6, SC-10, SC-4, SC-8, SC-14, SC-19, SC-15, SC-24
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServiceConfig {
    /// Policies by "/service/method" or, for all methods of a service, "/service/". Sorted by [`order`].
    by_name: Vec<(Box<str>, Arc<MethodConfig>)>,
    /// The policy for all other methods.
    default: Option<Arc<MethodConfig>>,
    retry_throttling: Option<RetryThrottling>,
}

impl ServiceConfig {
    /// Parses a service config.
    ///
    /// # Errors
    ///
    /// Returns the syntax error if the text is not JSON, or else an error for each value that breaks a rule.
    pub fn parse(text: &str) -> Result<Self, ServiceConfigErrors> {
        ServiceConfigReader::default().parse(text)
    }

    /// Reads a service config from a reader until its end.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`parse`](Self::parse), or an error if the reader fails or its bytes are not UTF-8.
    pub fn read(reader: impl io::Read) -> Result<Self, ServiceConfigErrors> {
        ServiceConfigReader::default().read(reader)
    }

    /// Reads a service config from a file. This blocks the current thread.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`parse`](Self::parse), or an error if the file cannot be read or is not UTF-8.
    pub fn load(path: impl AsRef<Path>) -> Result<Self, ServiceConfigErrors> {
        ServiceConfigReader::default().load(path)
    }

    /// Creates a lenient reader, which accepts two deviations that other libraries also accept.
    ///
    /// - Numbers may be strings (`"maxAttempts": "4"`), as some protobuf JSON writers produce.
    /// - Durations may lack digits before or after the point, or have leading zeros (`".5s"`, `"1.s"`, `"01s"`), as is
    ///   common in Go.
    ///
    /// ```
    /// # use reattempt_grpc::ServiceConfig;
    /// let text = r#"{ "methodConfig": [{ "name": [{}], "timeout": ".5s" }] }"#;
    /// assert!(ServiceConfig::parse(text).is_err());
    /// assert!(ServiceConfig::lenient().parse(text).is_ok());
    /// ```
    pub fn lenient() -> ServiceConfigReader {
        ServiceConfigReader { lenient: true }
    }

    /// Returns the policy for a method, given its path: "/service/method".
    ///
    /// The most specific entry applies: the one for the method, then the one for its service, then the default entry.
    /// Entries are not merged. Returns `None` if the config has no such entry. This method does not allocate.
    // SC-1
    pub fn for_method(&self, path: &str) -> Option<&MethodConfig> {
        self.entry(path).map(|method| &**method)
    }

    /// Returns the shared policy for a method, given its path.
    #[inline]
    fn entry(&self, path: &str) -> Option<&Arc<MethodConfig>> {
        self.named(path).or_else(|| self.named(&path[..=path.rfind('/')?])).or(self.default.as_ref())
    }

    /// Returns the settings that `reattempt`'s layers do not apply.
    ///
    /// These are `waitForReady: true`, `maxRequestMessageBytes` and `maxResponseMessageBytes`, which belong to the
    /// channel and the generated client. Log them when a config is loaded, or apply them from the [`MethodConfig`].
    ///
    /// ```
    /// # use reattempt_grpc::ServiceConfig;
    ///
    /// let config = ServiceConfig::parse(
    ///     r#"{ "methodConfig": [{ "name": [{ "service": "a.B" }], "waitForReady": true }] }"#,
    /// )?;
    /// let unapplied: Vec<_> = config.unapplied().map(|setting| setting.to_string()).collect();
    /// assert_eq!(unapplied, ["waitForReady of /a.B/ is not applied"]);
    /// # Ok::<(), reattempt_grpc::ServiceConfigErrors>(())
    /// ```
    pub fn unapplied(&self) -> impl Iterator<Item = UnappliedSetting<'_>> {
        self.entries().flat_map(|(name, method)| unapplied::of(name, method))
    }

    /// Returns all entries with their names. The name of the default entry is empty.
    fn entries(&self) -> impl Iterator<Item = (&str, &Arc<MethodConfig>)> {
        let named = self.by_name.iter().map(|(name, method)| (&**name, method));
        named.chain(self.default.iter().map(|method| ("", method)))
    }

    fn named(&self, name: &str) -> Option<&Arc<MethodConfig>> {
        let found = self.by_name.binary_search_by(|(own, _)| order(own, name));
        self.by_name.get(found.ok()?).map(|(_, method)| method)
    }

    /// Returns the throttling for all retries and hedges on the channel, or `None` if there is none.
    // THR-11
    pub fn retry_throttling(&self) -> Option<RetryThrottling> {
        self.retry_throttling
    }
}

/// Compares names by length first, so that few are compared byte by byte. A config has few names, so a binary search is
/// cheaper than hashing.
fn order(one: &str, other: &str) -> Ordering {
    one.len().cmp(&other.len()).then_with(|| one.cmp(other))
}

impl FromStr for ServiceConfig {
    type Err = ServiceConfigErrors;

    /// Parses a config, as [`ServiceConfig::parse`] does.
    fn from_str(text: &str) -> Result<Self, ServiceConfigErrors> {
        Self::parse(text)
    }
}

/// A reader of service configs, strict by default or [lenient](ServiceConfig::lenient).
#[derive(Debug, Clone, Copy, Default)]
pub struct ServiceConfigReader {
    lenient: bool,
}

impl ServiceConfigReader {
    /// Parses a service config.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ServiceConfig::parse`].
    pub fn parse(&self, text: &str) -> Result<ServiceConfig, ServiceConfigErrors> {
        reader::read(text, self.lenient)
    }

    /// Reads a service config from a reader until its end.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ServiceConfig::read`].
    pub fn read(&self, mut reader: impl io::Read) -> Result<ServiceConfig, ServiceConfigErrors> {
        let mut bytes = Vec::new();
        reader.read_to_end(&mut bytes).map_err(|error| unread("cannot be read", error))?;
        self.parse_bytes(&bytes)
    }

    /// Reads a service config from a file. This blocks the current thread.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`ServiceConfig::load`].
    pub fn load(&self, path: impl AsRef<Path>) -> Result<ServiceConfig, ServiceConfigErrors> {
        let path = path.as_ref();
        let bytes =
            fs::read(path).map_err(|error| unread(&format!("cannot be read from {}", path.display()), error))?;
        self.parse_bytes(&bytes)
    }

    fn parse_bytes(self, bytes: &[u8]) -> Result<ServiceConfig, ServiceConfigErrors> {
        let text = std::str::from_utf8(bytes).map_err(|error| unread("is not UTF-8", error))?;
        self.parse(text)
    }
}

fn unread(what: &str, cause: impl std::error::Error + Send + Sync + 'static) -> ServiceConfigErrors {
    ServiceConfigError::of_document(what, cause).into()
}
