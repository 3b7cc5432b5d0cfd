//! Classifiers written for tower-http, taken as they are.

use std::fmt;

use http::{HeaderMap, Response, StatusCode};
use reattempt_core::{Classify, Failure, FailureKind, Verdict};
use tower_http::classify::{ClassifiedResponse, ClassifyResponse};

use super::Outcome;

/// Asks a [`ClassifyResponse`] of tower-http about responses: what it calls a failure is retried
/// where the request may be repeated, what it calls a success is one.
///
/// Errors, and responses that it cannot judge before their end, are left to the table. The headers
/// are copied for each response it is asked about.
///
/// ```
/// use reattempt_tower::{ClassifyWith, RetryPolicy};
/// use tower_http::classify::{ServerErrorsAsFailures, StatusInRangeAsFailures};
///
/// let policy = RetryPolicy::http().classify_with(ClassifyWith::new(StatusInRangeAsFailures::new(500..=599)));
/// ```
#[derive(Clone)]
pub struct ClassifyWith<C>(C);

impl<C> ClassifyWith<C> {
    /// Takes a classifier of tower-http.
    pub fn new(classifier: C) -> Self {
        Self(classifier)
    }
}

impl<C: ClassifyResponse + Clone> ClassifyWith<C> {
    fn of_head(&self, status: StatusCode, headers: &HeaderMap) -> Option<Verdict> {
        let mut response = Response::new(());
        *response.status_mut() = status;
        *response.headers_mut() = headers.clone();
        match self.0.clone().classify_response(&response) {
            ClassifiedResponse::Ready(Ok(())) => Some(Verdict::Success),
            ClassifiedResponse::Ready(Err(_)) => {
                let failure = Failure::new(FailureKind::Server).with_code(status.as_u16());
                Some(Verdict::Transient(failure))
            }
            ClassifiedResponse::RequiresEos(_) => None,
        }
    }
}

impl<'a, C: ClassifyResponse + Clone> Classify<Outcome<'a>> for ClassifyWith<C> {
    fn classify(&self, outcome: Outcome<'a>) -> Option<Verdict> {
        match outcome {
            Outcome::Response { status, headers } => self.of_head(status, headers),
            Outcome::Error(_) => None,
        }
    }
}

impl<C> fmt::Debug for ClassifyWith<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClassifyWith").finish_non_exhaustive()
    }
}
