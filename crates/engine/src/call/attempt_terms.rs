//! The terms of one attempt that few attempts have: options, a limit of an outer layer, a streamed upload, a wait.

use std::time::Duration;

use super::frame;
use super::layer_terms::LayerTerms;
use super::options::CallOptions;
use crate::call::clock::Instant;

/// The terms of an attempt, for its guards. An attempt without any of them has no value of this type.
#[derive(Debug, Default)]
pub struct AttemptTerms {
    /// The caller's overrides.
    pub options: Option<CallOptions>,
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

    /// Sets the time by which a guard must admit the attempt.
    pub fn set_start_by(&mut self, latest: Duration) {
        self.special().start_by = Some(latest);
    }

    /// Sets the time that the attempt has waited for its guard.
    pub fn set_waited(&mut self, waited: Duration) {
        self.special().waited = waited;
    }

    /// Returns the outer layer's time limit for the attempt.
    pub fn limit(&self) -> Option<Duration> {
        self.special.as_ref()?.of_layer.limit
    }

    /// Returns the time by which a guard must admit the attempt, if it is earlier than the call's deadline.
    pub fn start_by(&self) -> Option<Duration> {
        self.special.as_ref()?.start_by
    }

    /// Returns the time that the attempt has waited for its guard.
    pub fn waited(&self) -> Duration {
        self.special.as_ref().map_or(Duration::ZERO, |special| special.waited)
    }

    /// Returns `true` if the upload waits for the caller's body.
    pub fn is_source_pending(&self) -> bool {
        self.special.as_ref().is_some_and(|special| special.of_layer.is_source_pending())
    }
}

/// Returns the time at which the outer layer sent the attempt, and adds the outer layer's terms to `terms`.
#[inline]
pub fn arrived(terms: &mut Option<Box<AttemptTerms>>) -> Instant {
    frame::arrived(
        #[cold]
        |special| terms.get_or_insert_default().set_layer_terms(special),
    )
}
