//! An error and its causes, as an iterator and as one line of text.

use std::error::Error;

use super::redact::redacted;

/// tower's type of boxed errors.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Returns the error and its causes, from the outside in.
pub(crate) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// Returns the error and its causes in one line, without credentials.
pub(crate) fn chain(error: &(dyn Error + 'static)) -> Box<str> {
    let mut text = error.to_string();
    for cause in causes(error).skip(1) {
        let cause = cause.to_string();
        // Many errors repeat their cause in their own text.
        if !text.ends_with(&cause) {
            text.push_str(": ");
            text.push_str(&cause);
        }
    }
    redacted(&text).into()
}
