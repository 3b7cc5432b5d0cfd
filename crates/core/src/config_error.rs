//! The error for an invalid setting.

use alloc::string::{String, ToString};
use core::fmt;

/// An invalid setting: its name, its value and the allowed values.
///
/// Setters do not return this error, because they clamp their values. Only methods that check several settings against
/// each other return it.
///
/// ```
/// use reattempt::error::ConfigError;
/// # mod reattempt { pub use reattempt_core as error; }
///
/// let error = ConfigError::new("attempt_timeout", "40s", "below `total_time`");
/// assert_eq!(error.to_string(), "`attempt_timeout` must be below `total_time`, but it is 40s");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    field: &'static str,
    value: String,
    allowed: &'static str,
}

impl ConfigError {
    /// Creates an error for `field`, whose value was `value`. `allowed` completes "must be …".
    pub fn new(field: &'static str, value: impl fmt::Display, allowed: &'static str) -> Self {
        Self { field, value: value.to_string(), allowed }
    }

    /// Returns the name of the setting.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// Returns the invalid value as text.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns the allowed values, as text that completes "must be …".
    pub fn allowed(&self) -> &'static str {
        self.allowed
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` must be {}, but it is {}", self.field, self.allowed, self.value)
    }
}

impl core::error::Error for ConfigError {}
