//! The verdict on an error, whatever client it comes from.

use std::error::Error;

use reattempt_core::{Failure, FailureKind, Verdict};

/// Looks for tower's and tokio's own timeouts, then asks what HTTP makes of it. An error that nobody
/// knows is not retried.
pub(crate) fn verdict_of_error(error: &(dyn Error + 'static)) -> Verdict {
    let elapsed = causes(error).any(|error| {
        error.is::<tower::timeout::error::Elapsed>() || error.is::<tokio::time::error::Elapsed>()
    });
    if elapsed {
        return Verdict::Transient(Failure::new(FailureKind::Timeout));
    }
    reattempt_http::verdict_of_error(error).unwrap_or(Verdict::Permanent)
}

/// The error and its causes, from the outside in.
pub(crate) fn causes<'a>(
    error: &'a (dyn Error + 'static),
) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The error and its causes in one line.
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
    text.into_boxed_str()
}
