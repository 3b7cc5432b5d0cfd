//! The terms of one attempt that few attempts have: options, a limit of an outer layer, a streamed upload, a wait.

use std::time::Duration;

use reattempt_replay::SourceWatch;

use crate::call::options::CallOptions;

/// The terms of an attempt, for its guards. An attempt without any of them has no value of this type.
#[derive(Debug, Default)]
pub(crate) struct AttemptTerms {
    pub(crate) options: Option<CallOptions>,
    /// The terms that are not in the request. Boxed, because most attempts with options have none of them.
    special: Option<Box<SpecialTerms>>,
}

#[derive(Debug, Default)]
struct SpecialTerms {
    of_layer: LayerTerms,
    /// The time that the attempt has waited for the guard.
    waited: Duration,
    /// The time by which a guard must admit the attempt, if it is earlier than the call's deadline.
    start_by: Option<Duration>,
}

/// The terms that a retry or hedge layer sets for the attempt that it sends.
#[derive(Debug, Clone, Default)]
pub(crate) struct LayerTerms {
    /// The time limit of the attempt, from its sending.
    pub(crate) limit: Option<Duration>,
    /// The watch on the caller's body, if that is streamed.
    pub(crate) source: Option<SourceWatch>,
}

impl LayerTerms {
    /// Returns the terms of an attempt with this time limit and this upload, if it has any.
    #[inline]
    pub(crate) fn of(limit: Option<Duration>, source: &Option<SourceWatch>) -> Option<Self> {
        (limit.is_some() || source.is_some()).then(|| Self { limit, source: source.clone() })
    }

    pub(crate) fn is_any(&self) -> bool {
        self.limit.is_some() || self.source.is_some()
    }

    /// Returns the terms of an attempt that is sent after it has waited for this time.
    pub(crate) fn after(&self, waited: Duration) -> Self {
        Self { limit: self.limit.map(|limit| limit.saturating_sub(waited)), source: self.source.clone() }
    }

    /// Returns `true` if the upload waits for the caller's body.
    pub(crate) fn is_source_pending(&self) -> bool {
        self.source.as_ref().is_some_and(SourceWatch::is_pending)
    }
}

impl From<CallOptions> for AttemptTerms {
    fn from(options: CallOptions) -> Self {
        Self { options: Some(options), special: None }
    }
}

impl AttemptTerms {
    fn special(&mut self) -> &mut SpecialTerms {
        self.special.get_or_insert_default()
    }

    pub(crate) fn set_layer_terms(&mut self, terms: LayerTerms) {
        self.special().of_layer = terms;
    }

    pub(crate) fn set_start_by(&mut self, latest: Duration) {
        self.special().start_by = Some(latest);
    }

    pub(crate) fn set_waited(&mut self, waited: Duration) {
        self.special().waited = waited;
    }

    pub(crate) fn limit(&self) -> Option<Duration> {
        self.special.as_ref()?.of_layer.limit
    }

    pub(crate) fn start_by(&self) -> Option<Duration> {
        self.special.as_ref()?.start_by
    }

    pub(crate) fn waited(&self) -> Duration {
        self.special.as_ref().map_or(Duration::ZERO, |special| special.waited)
    }

    /// Returns `true` if the upload waits for the caller's body.
    pub(crate) fn is_source_pending(&self) -> bool {
        self.special.as_ref().is_some_and(|special| special.of_layer.is_source_pending())
    }
}
