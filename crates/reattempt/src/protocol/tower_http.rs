//! Classifiers that were written for tower-http.

use std::fmt;

use http::{HeaderMap, Response, StatusCode};
use reattempt_core::{Classification, Classifier, Failure, FailureKind, Verdict};
use reattempt_http::verdict_of_status;
use tower_http::classify::{ClassifiedResponse, ClassifyResponse};

use super::Outcome;

/// A classifier made of a [`ClassifyResponse`] of tower-http.
///
/// A response that it calls a failure is retried by the table. If the table would not retry it, it is retried if the
/// request may be repeated. The table classifies everything else: successes, errors, and responses that
/// `ClassifyResponse` would judge at their ends. The headers of each response are copied for `ClassifyResponse`.
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
    /// Creates a classifier of one of tower-http.
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
            // The table decides, because the classifier may know only a part of it: one for 5xx calls 429 no failure.
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
