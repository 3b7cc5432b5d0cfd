//! The one error of configuration: refused in the constructor, naming the field.

use alloc::string::{String, ToString};
use core::fmt;

/// A setting that was refused, with its name, its value and what is allowed.
///
/// Returned by the constructors and setters of every schedule, budget and policy of this workspace,
/// so that nothing built can be illegal.
///
/// ```
/// use reattempt_core::ConfigError;
/// let error = ConfigError::new("factor", f64::NAN, "a finite number above 0");
/// assert_eq!(error.to_string(), "`factor` must be a finite number above 0, but it is NaN");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    field: &'static str,
    value: String,
    allowed: &'static str,
}

impl ConfigError {
    /// An error for `field`, which was `value`, where `allowed` completes "must be …".
    pub fn new(field: &'static str, value: impl fmt::Display, allowed: &'static str) -> Self {
        Self { field, value: value.to_string(), allowed }
    }

    /// The name of the refused setting.
    pub fn field(&self) -> &'static str {
        self.field
    }

    /// The refused value as text.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// What would have been allowed.
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
