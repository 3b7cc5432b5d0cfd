//! Support for tower-http's classifiers.

use std::fmt;

use http::{HeaderMap, Response, StatusCode};
use reattempt_core::{Classification, Classifier, Failure, FailureKind, Verdict};
use reattempt_http::verdict_of_status;
use tower_http::classify::{ClassifiedResponse, ClassifyResponse};

use super::Outcome;

/// A classifier based on a tower-http [`ClassifyResponse`].
///
/// If `ClassifyResponse` classifies a response as a failure, it is retried as the default rules decide. If they would
/// not retry it, it is still retried if the request may be repeated. The default rules also classify everything else:
/// successes, errors, and responses that `ClassifyResponse` would classify at their end. Each response's headers are
/// copied for `ClassifyResponse`.
///
/// ```
/// use reattempt::{Http, RetryPolicy};
/// use reattempt::classify::TowerHttpClassifier;
/// use tower_http::classify::{ServerErrorsAsFailures, StatusInRangeAsFailures};
///
/// let http = Http::new().classify_with(TowerHttpClassifier::new(StatusInRangeAsFailures::new(500..=599)));
/// let policy = RetryPolicy::with(http);
/// ```
#[derive(Clone)]
pub struct TowerHttpClassifier<C>(C);

impl<C> TowerHttpClassifier<C> {
    /// Creates a classifier from a tower-http classifier.
    pub fn new(classifier: C) -> Self {
        Self(classifier)
    }
}

impl<C: ClassifyResponse + Clone> TowerHttpClassifier<C> {
    fn of_head(&self, status: StatusCode, headers: &HeaderMap) -> Option<Verdict> {
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers.clone();
        match self.0.clone().classify_response(&response) {
            ClassifiedResponse::Ready(Err(_)) => Some(match verdict_of_status(status) {
                Verdict::Success | Verdict::Permanent => {
                    Verdict::Transient(Failure::new(FailureKind::Server).with_code(status.as_u16()))
                }
                worth_a_retry => worth_a_retry,
            }),
            // The default rules decide, because the classifier may cover only some statuses: for a 5xx classifier, 429
            // is a success.
            ClassifiedResponse::Ready(Ok(())) => None,
            ClassifiedResponse::RequiresEos(_) => None,
        }
    }
}

impl<'a, C: ClassifyResponse + Clone> Classifier<Outcome<'a>> for TowerHttpClassifier<C> {
    fn classify(&self, outcome: Outcome<'a>) -> Option<Classification> {
        self.of_head(outcome.status()?, outcome.headers()?).map(Into::into)
    }
}

impl<C> fmt::Debug for TowerHttpClassifier<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TowerHttpClassifier").finish_non_exhaustive()
    }
}
