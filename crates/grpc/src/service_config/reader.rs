//! The service-config rules, applied to a document.
//!
//! A value that breaks a rule is recorded as an error and skipped. Reading continues, so all errors in a document are
//! found at once.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;

use super::json::{Node, Path};
use super::{
    CodeSet, MethodConfig, MethodHedgingPolicy, MethodPolicy, MethodRetryPolicy, ServiceConfig, ServiceConfigError,
    ServiceConfigErrors, duration, order,
};
use crate::Code;
use crate::decimal::Decimal;
use crate::throttle::throttling::{MAX_TOKENS, RetryThrottling, TOKEN_RATIO, max_tokens_of, token_ratio_of};

pub(super) fn read(text: &str, lenient: bool) -> Result<ServiceConfig, ServiceConfigErrors> {
    let raw = serde_json::from_str(text).map_err(ServiceConfigError::syntax)?;
    let mut reader = ConfigReader { lenient, errors: Vec::new() };
    let document = Node { raw, path: Path::Document };
    let config = reader.service_config(&document).unwrap_or_default();
    ServiceConfigErrors::none_or(reader.errors, config)
}

struct ConfigReader {
    lenient: bool,
    errors: Vec<ServiceConfigError>,
}

/// A JSON object. A null member is treated as absent.
struct Object<'d, 'p> {
    members: HashMap<String, &'d RawValue>,
    path: &'p Path<'p>,
}

impl<'d> Object<'d, '_> {
    fn get<'p>(&'p self, name: &'p str) -> Option<Node<'d, 'p>> {
        let raw = self.members.get(name)?;
        let node = Node { raw, path: Path::Key(self.path, name) };
        (!node.is_null()).then_some(node)
    }
}

/// Readers for the document's objects.
impl ConfigReader {
    fn service_config(&mut self, document: &Node<'_, '_>) -> Option<ServiceConfig> {
        let root = self.object(document)?;
        let mut config = ServiceConfig {
            retry_throttling: self.optional(&root, "retryThrottling", Self::throttling),
            ..ServiceConfig::default()
        };
        // The path at which each name first occurred.
        let mut first = HashMap::new();
        let entries = root.get("methodConfig");
        for (number, entry) in self.items(entries.as_ref()).iter().enumerate() {
            let Some(entry) = self.object(entry) else { continue };
            let method = Arc::new(self.method(&entry));
            let names = entry.get("name");
            for (index, node) in self.items(names.as_ref()).iter().enumerate() {
                let Some(name) = self.name(node) else { continue };
                match first.entry(name) {
                    Entry::Occupied(first) => {
                        let (number, index) = first.get();
                        let place = format!("methodConfig[{number}].name[{index}]");
                        self.refuse(node.path, format!("must not be the same as {place}"));
                    }
                    Entry::Vacant(first) => {
                        match first.key().as_str() {
                            "" => config.default = Some(Arc::clone(&method)),
                            name => config.by_name.push((name.into(), Arc::clone(&method))),
                        }
                        first.insert((number, index));
                    }
                }
            }
        }
        config.by_name.sort_unstable_by(|(one, _), (other, _)| order(one, other));
        Some(config)
    }

    /// Reads a name in the form that [`ServiceConfig::for_method`] looks up. It is empty for the default entry.
    fn name(&mut self, node: &Node<'_, '_>) -> Option<String> {
        let name = self.object(node)?;
        let service = self.part_of_name(&name, "service");
        let method = self.part_of_name(&name, "method");
        match (service?.as_str(), method?.as_str()) {
            ("", "") => Some(String::new()),
            ("", _) => {
                let path = Path::Key(name.path, "service");
                self.refuse(path, "must not be empty where `method` is given");
                None
            }
            (service, method) => Some(format!("/{service}/{method}")),
        }
    }

    fn part_of_name(&mut self, name: &Object<'_, '_>, part: &str) -> Option<String> {
        match name.get(part) {
            Some(node) => self.checked(&node, node.text(), "a string"),
            None => Some(String::new()),
        }
    }

    fn method(&mut self, entry: &Object<'_, '_>) -> MethodConfig {
        let timeout = self.optional(entry, "timeout", Self::duration);
        let wait_for_ready =
            self.optional(entry, "waitForReady", |reader, node| reader.checked(node, node.boolean(), "true or false"));
        let max_request_message_bytes = self.optional(entry, "maxRequestMessageBytes", Self::message_bytes);
        let max_response_message_bytes = self.optional(entry, "maxResponseMessageBytes", Self::message_bytes);
        let retry = self.optional(entry, "retryPolicy", Self::retry_policy);
        let hedging = self.optional(entry, "hedgingPolicy", Self::hedging_policy);
        if let (Some(_), Some(second)) = (entry.get("retryPolicy"), entry.get("hedgingPolicy")) {
            self.refuse(second.path, "must not be given beside `retryPolicy`");
        }
        let policy = match (retry, hedging) {
            (Some(retry), _) => MethodPolicy::Retry(retry),
            (None, Some(hedging)) => MethodPolicy::Hedging(hedging),
            (None, None) => MethodPolicy::None,
        };
        MethodConfig { timeout, wait_for_ready, max_request_message_bytes, max_response_message_bytes, policy }
    }

    fn retry_policy(&mut self, node: &Node<'_, '_>) -> Option<MethodRetryPolicy> {
        let policy = self.object(node)?;
        let max_attempts = self.required(&policy, "maxAttempts", Self::max_attempts);
        let initial_backoff = self.required(&policy, "initialBackoff", Self::backoff);
        let max_backoff = self.required(&policy, "maxBackoff", Self::backoff);
        let backoff_multiplier = self.required(&policy, "backoffMultiplier", Self::multiplier);
        let retryable_codes = self.required(&policy, "retryableStatusCodes", |reader, node| {
            let codes = reader.codes(node)?;
            let listed = (!codes.is_empty()).then_some(codes);
            reader.checked(node, listed, "a list of at least one code")
        });
        Some(MethodRetryPolicy {
            max_attempts: max_attempts?,
            initial_backoff: initial_backoff?,
            max_backoff: max_backoff?,
            backoff_multiplier: backoff_multiplier?,
            retryable_codes: retryable_codes?,
        })
    }

    fn hedging_policy(&mut self, node: &Node<'_, '_>) -> Option<MethodHedgingPolicy> {
        let policy = self.object(node)?;
        let max_attempts = self.required(&policy, "maxAttempts", Self::max_attempts);
        let hedging_delay = self.optional(&policy, "hedgingDelay", Self::duration);
        let non_fatal_codes = self.optional(&policy, "nonFatalStatusCodes", Self::codes);
        Some(MethodHedgingPolicy {
            max_attempts: max_attempts?,
            hedging_delay: hedging_delay.unwrap_or_default(),
            non_fatal_codes: non_fatal_codes.unwrap_or_default(),
        })
    }

    fn throttling(&mut self, node: &Node<'_, '_>) -> Option<RetryThrottling> {
        let throttling = self.object(node)?;
        let max_tokens =
            self.required(&throttling, "maxTokens", |reader, node| reader.number(node, max_tokens_of, MAX_TOKENS));
        let token_ratio =
            self.required(&throttling, "tokenRatio", |reader, node| reader.number(node, token_ratio_of, TOKEN_RATIO));
        Some(RetryThrottling::of_thousandths(max_tokens?, token_ratio?))
    }
}

/// Readers for field values.
impl ConfigReader {
    /// Reads a number of attempts. It saturates, because the client's own limit lowers it anyway.
    fn max_attempts(&mut self, node: &Node<'_, '_>) -> Option<u32> {
        let read = |text: &str| Decimal::whole(text).filter(|number| *number > 1).map(saturated);
        self.number(node, read, "a whole number above 1")
    }

    fn message_bytes(&mut self, node: &Node<'_, '_>) -> Option<u32> {
        let read = |text: &str| Decimal::whole(text)?.try_into().ok();
        self.number(node, read, "a whole number from 0 to 4294967295")
    }

    fn multiplier(&mut self, node: &Node<'_, '_>) -> Option<f64> {
        let legal = |number: &f64| number.is_finite() && *number > 0.0;
        self.number(node, |text| text.parse().ok().filter(legal), "a number above 0")
    }

    fn duration(&mut self, node: &Node<'_, '_>) -> Option<Duration> {
        let duration = node.text().and_then(|text| duration::parse(&text, self.lenient));
        self.checked(node, duration, "a duration like \"1.5s\", not below 0")
    }

    fn backoff(&mut self, node: &Node<'_, '_>) -> Option<Duration> {
        let duration = node.text().and_then(|text| duration::parse(&text, self.lenient));
        let backoff = duration.filter(|duration| !duration.is_zero());
        self.checked(node, backoff, "a duration like \"1.5s\", above 0")
    }

    fn codes(&mut self, node: &Node<'_, '_>) -> Option<CodeSet> {
        // Every code is checked, even after an invalid one.
        let codes: Vec<_> = self.list(node)?.iter().map(|node| self.code(node)).collect();
        codes.into_iter().collect()
    }

    fn code(&mut self, node: &Node<'_, '_>) -> Option<Code> {
        let mut codes = (1..=16).map(Code::from_number);
        let code = match (node.number(false), node.text()) {
            (Some(number), _) => {
                Decimal::whole(&number).and_then(|number| codes.find(|code| u64::from(code.number()) == number))
            }
            (None, Some(name)) => codes.find(|code| code.to_string().eq_ignore_ascii_case(&name)),
            (None, None) => None,
        };
        self.checked(node, code, "a status code other than OK, by its name or number")
    }

    fn number<T>(&mut self, node: &Node<'_, '_>, read: impl FnOnce(&str) -> Option<T>, allowed: &str) -> Option<T> {
        let number = node.number(self.lenient).and_then(|text| read(&text));
        self.checked(node, number, allowed)
    }
}

/// Readers for objects and lists.
impl ConfigReader {
    fn object<'d, 'p>(&mut self, node: &'p Node<'d, '_>) -> Option<Object<'d, 'p>> {
        let all = self.checked(node, node.members(), "an object, its keys Unicode text")?;
        let mut members = HashMap::with_capacity(all.len());
        for (key, raw) in all {
            match members.entry(key) {
                Entry::Vacant(entry) => _ = entry.insert(raw),
                Entry::Occupied(entry) => {
                    self.refuse(Path::Key(&node.path, entry.key()), "must not be given twice");
                }
            }
        }
        Some(Object { members, path: &node.path })
    }

    fn list<'d, 'p>(&mut self, node: &'p Node<'d, '_>) -> Option<Vec<Node<'d, 'p>>> {
        let items = self.checked(node, node.items(), "a list")?;
        let node = |(index, raw)| Node { raw, path: Path::Index(&node.path, index) };
        Some(items.into_iter().enumerate().map(node).collect())
    }

    /// Returns the items of a list, or none if the list is absent.
    fn items<'d, 'p>(&mut self, node: Option<&'p Node<'d, '_>>) -> Vec<Node<'d, 'p>> {
        node.and_then(|node| self.list(node)).unwrap_or_default()
    }

    fn optional<T>(
        &mut self,
        object: &Object<'_, '_>,
        name: &str,
        read: impl FnOnce(&mut Self, &Node<'_, '_>) -> Option<T>,
    ) -> Option<T> {
        read(self, &object.get(name)?)
    }

    fn required<T>(
        &mut self,
        object: &Object<'_, '_>,
        name: &str,
        read: impl FnOnce(&mut Self, &Node<'_, '_>) -> Option<T>,
    ) -> Option<T> {
        if object.get(name).is_none() {
            self.refuse(Path::Key(object.path, name), "is required");
        }
        self.optional(object, name, read)
    }

    /// Returns the value. If it is missing, records an error with the allowed values.
    fn checked<T>(&mut self, node: &Node<'_, '_>, value: Option<T>, allowed: &str) -> Option<T> {
        if value.is_none() {
            let reason = format!("must be {allowed}, but it is {}", node.excerpt());
            self.refuse(node.path, reason);
        }
        value
    }

    fn refuse(&mut self, path: Path<'_>, reason: impl Into<String>) {
        self.errors.push(ServiceConfigError::new(path, reason));
    }
}

fn saturated(number: u64) -> u32 {
    number.try_into().unwrap_or(u32::MAX)
}
