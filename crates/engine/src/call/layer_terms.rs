//! The terms that a retry or hedge layer sets for the attempt that it sends.

use std::time::Duration;

use reattempt_replay::SourceWatch;

/// The terms that a retry or hedge layer sets for the attempt that it sends.
#[derive(Debug, Clone, Default)]
pub struct LayerTerms {
    /// The time limit of the attempt, from its sending.
    pub(crate) limit: Option<Duration>,
    /// The watch on the caller's body, if that is streamed.
    pub(crate) source: Option<SourceWatch>,
    /// `true` if the attempt follows the loss of an HTTP/1 connection or a 408, so that it needs a new connection.
    pub(crate) fresh: bool,
}

impl LayerTerms {
    /// The terms of an attempt without any.
    pub(crate) const NONE: Self = Self { limit: None, source: None, fresh: false };

    /// Returns the terms of an attempt with this time limit and this upload, if it has any.
    #[inline]
    pub(crate) fn of(limit: Option<Duration>, source: &Option<SourceWatch>) -> Option<Self> {
        (limit.is_some() || source.is_some()).then(|| Self { limit, source: source.clone(), fresh: false })
    }

    pub(crate) fn is_any(&self) -> bool {
        self.limit.is_some() || self.source.is_some() || self.fresh
    }

    /// Returns the terms of an attempt that is sent after it has waited for this time.
    pub(crate) fn after(&self, waited: Duration) -> Self {
        Self { limit: self.limit.map(|limit| limit.saturating_sub(waited)), ..self.clone() }
    }

    /// Returns `true` if the upload waits for the caller's body.
    pub(crate) fn is_source_pending(&self) -> bool {
        self.source.as_ref().is_some_and(SourceWatch::is_pending)
    }
}
