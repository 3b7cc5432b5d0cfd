//! The settings of a fallback, and the outcomes that it replaces.

use std::error::Error;
use std::sync::Arc;

use reattempt_core::Verdict;
use reattempt_core::guard::Health;
use reattempt_engine::CallOptions;
use reattempt_engine::error::BoxedError;
use reattempt_engine::observe::Observer;
use reattempt_guard::contract::GuardOutcome;
use tower::BoxError;

/// The settings that clones and calls in flight share.
pub(crate) struct Shared<F, P> {
    pub(crate) protocol: P,
    pub(crate) source: Arc<F>,
    pub(crate) on_permanent: bool,
    pub(crate) observer: Option<Arc<dyn Observer>>,
}

impl<F, P> Shared<F, P> {
    /// Returns `None` if the outcome is not replaced. Otherwise returns `true` if the outcome proves that the request
    /// was not processed.
    pub(super) fn fails<R, E>(
        &self,
        outcome: Result<&R, &(dyn Error + 'static)>,
        options: Option<&CallOptions>,
    ) -> Option<bool>
    where
        P: GuardOutcome<R, E, BoxedError>,
        E: Into<BoxError>,
    {
        let (classification, judged) = self.protocol.health(outcome, options);
        let unprocessed = matches!(classification.verdict, Verdict::NotProcessed(_));
        // A 408 counts too, although it is not a server failure.
        let retryable = outcome.is_ok() && classification.verdict.failure().is_some();
        match judged.health {
            _ if self.protocol.facts(outcome).refused_here => Some(unprocessed),
            _ if classification.verdict == Verdict::Success || classification.verdict.is_pending() => None,
            _ if retryable => Some(unprocessed),
            Health::Ignored => None,
            Health::Served if !self.on_permanent => None,
            _ => Some(unprocessed),
        }
    }
}

impl<F, P: Clone> Clone for Shared<F, P> {
    fn clone(&self) -> Self {
        Self {
            protocol: self.protocol.clone(),
            source: Arc::clone(&self.source),
            on_permanent: self.on_permanent,
            observer: self.observer.clone(),
        }
    }
}
