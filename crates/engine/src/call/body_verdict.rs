//! The verdict on a response body that was read as part of its attempt.

use http::Extensions;
use reattempt_core::{Classification, Failure, FailureKind};

use super::in_use;

/// The verdict on a response body, in the extensions of its response.
///
/// [`PeekBodyLayer`][layer] adds it if a rule has judged the whole body, or if the body broke. Every layer around it
/// then judges the response by it.
///
/// [layer]: https://docs.rs/reattempt/latest/reattempt/struct.PeekBodyLayer.html
#[derive(Debug, Clone)]
pub struct BodyVerdict(Kind);

#[derive(Debug, Clone)]
enum Kind {
    /// The classification of the whole body by a rule.
    Judged(Classification),
    /// The body broke, with the text of its error.
    Broke { failure: Failure, error: Option<Box<str>> },
}

impl BodyVerdict {
    /// Records that the process has a layer that adds verdicts. Before that, none is looked for.
    pub fn begin() {
        in_use::BODIES.begin();
    }

    /// Creates the verdict of a rule on the whole body.
    pub const fn judged(classification: Classification) -> Self {
        Self(Kind::Judged(classification))
    }

    /// Creates the verdict on a body that broke. The failure has no code, because the status is that of a success.
    pub const fn broke(kind: FailureKind, error: Option<Box<str>>) -> Self {
        Self(Kind::Broke { failure: Failure::new(kind), error })
    }

    /// Returns the verdict in the extensions of a response. Unless the process has a layer that reads bodies, this only
    /// reads a flag.
    // B-13
    #[inline]
    pub fn of(extensions: &Extensions) -> Option<&Self> {
        if in_use::BODIES.is_begun() { Self::find(extensions) } else { None }
    }

    // Not inlined, so that processes without the layer do not pay for its stack.
    #[inline(never)]
    fn find(extensions: &Extensions) -> Option<&Self> {
        extensions.get()
    }

    /// Returns the classification of the whole body by a rule.
    pub fn classification(&self) -> Option<Classification> {
        match self.0 {
            Kind::Judged(classification) => Some(classification),
            Kind::Broke { .. } => None,
        }
    }

    /// Returns the failure of a body that broke.
    pub fn failure(&self) -> Option<Failure> {
        match self.0 {
            Kind::Judged(_) => None,
            Kind::Broke { failure, .. } => Some(failure),
        }
    }

    /// Returns the text of the error that broke the body, if it is known.
    pub fn error(&self) -> Option<&str> {
        match &self.0 {
            Kind::Judged(_) => None,
            Kind::Broke { error, .. } => error.as_deref(),
        }
    }
}
