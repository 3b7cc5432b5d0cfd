//! The errors in a service config, each with its position in the document.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// A non-empty list of all errors in a service config.
///
/// [`Display`](fmt::Display) writes the first 20 errors, one per line, and then the number of further errors.
/// [`iter`](Self::iter) returns all of them.
///
/// ```
/// # use reattempt_grpc::ServiceConfig;
/// let text = r#"{ "methodConfig": [{ "waitForReady": "yes", "timeout": "1h" }] }"#;
/// let errors = ServiceConfig::parse(text).unwrap_err();
/// assert_eq!(
///     errors.to_string(),
///     "methodConfig[0].timeout must be a duration like \"1.5s\", not below 0, but it is \"1h\"\n\
///      methodConfig[0].waitForReady must be true or false, but it is \"yes\""
/// );
/// ```
#[derive(Clone)]
pub struct ServiceConfigErrors {
    errors: Vec<ServiceConfigError>,
}

/// The maximum number of errors in a displayed text.
const MOST_WRITTEN: usize = 20;

impl ServiceConfigErrors {
    /// Returns the errors, in document order.
    pub fn iter(&self) -> std::slice::Iter<'_, ServiceConfigError> {
        self.errors.iter()
    }

    /// Returns the errors to write, and the number of further errors.
    fn written(&self) -> (&[ServiceConfigError], usize) {
        let written = self.errors.get(..MOST_WRITTEN).unwrap_or(&self.errors);
        (written, self.errors.len() - written.len())
    }

    /// Returns `value` if there are no errors.
    pub(super) fn none_or<T>(errors: Vec<ServiceConfigError>, value: T) -> Result<T, ServiceConfigErrors> {
        if errors.is_empty() { Ok(value) } else { Err(Self { errors }) }
    }
}

impl From<ServiceConfigError> for ServiceConfigErrors {
    fn from(error: ServiceConfigError) -> Self {
        Self { errors: vec![error] }
    }
}

impl IntoIterator for ServiceConfigErrors {
    type Item = ServiceConfigError;
    type IntoIter = std::vec::IntoIter<ServiceConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.errors.into_iter()
    }
}

impl<'a> IntoIterator for &'a ServiceConfigErrors {
    type Item = &'a ServiceConfigError;
    type IntoIter = std::slice::Iter<'a, ServiceConfigError>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl fmt::Display for ServiceConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (written, others) = self.written();
        for (number, error) in written.iter().enumerate() {
            if number > 0 {
                f.write_str("\n")?;
            }
            error.fmt(f)?;
        }
        if others > 0 { write!(f, "\nand {others} more") } else { Ok(()) }
    }
}

impl fmt::Debug for ServiceConfigErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (written, others) = self.written();
        let mut fields = f.debug_struct("ServiceConfigErrors");
        fields.field("errors", &written).field("others", &others).finish()
    }
}

impl Error for ServiceConfigErrors {
    /// Returns the source of the first error.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.errors.first()?.source()
    }
}

/// An error in a service config: its path in the document, and the reason.
#[derive(Debug, Clone)]
pub struct ServiceConfigError {
    path: String,
    reason: String,
    position: Option<(usize, usize)>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl ServiceConfigError {
    /// Creates an error at a JSON path. `reason` completes a sentence that starts with the path.
    pub(super) fn new(path: impl fmt::Display, reason: impl Into<String>) -> Self {
        Self { path: path.to_string(), reason: reason.into(), position: None, source: None }
    }

    /// Creates an error for the whole document.
    pub(super) fn of_document(what: &str, cause: impl Error + Send + Sync + 'static) -> Self {
        let reason = format!("{what}: {cause}");
        Self { source: Some(Arc::new(cause)), ..Self::new("", reason) }
    }

    /// Creates the error for a document that is not JSON.
    pub(super) fn syntax(error: serde_json::Error) -> Self {
        let position = Some((error.line(), error.column()));
        Self { position, ..Self::of_document("is not JSON", error) }
    }

    /// Returns the path of the invalid value, such as `methodConfig[0].retryPolicy.maxAttempts`. It is empty for the
    /// whole document.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Returns the reason, with the start of the invalid value.
    pub fn reason(&self) -> &str {
        &self.reason
    }

    /// Returns the line and column of a JSON syntax error, both counted from 1, or `None` for other errors. The column
    /// is 0 if the text ends at the start of a line.
    pub fn position(&self) -> Option<(usize, usize)> {
        self.position
    }
}

impl fmt::Display for ServiceConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "the document" } else { &self.path };
        write!(f, "{path} {}", self.reason)
    }
}

impl Error for ServiceConfigError {
    /// Returns the syntax error, or the error that occurred while reading the text.
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|error| error as &(dyn Error + 'static))
    }
}
