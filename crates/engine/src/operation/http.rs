//! HTTP's rules for operations that return responses.

use std::error::Error;
use std::time::Duration;

use http::{HeaderMap, Method, StatusCode};
use reattempt_core::{Classification, Failure, FailureKind, Schedule, Verdict};
use reattempt_http::{classification_of_response, fault_of_error, is_repeatable, verdict_of_error};

use super::Retrying;
use super::rules::{ClassifiedResult, Rules};
use crate::call::errors::causes;

/// An HTTP response, as [`Retrying::http`] reads it.
///
/// Implemented for `http::Response`, which `ureq` returns too, for `reqwest::Response` (feature `reqwest`, for that of
/// 0.12 `reqwest-0-12`) and for `reqwest::blocking::Response` (feature `reqwest-blocking`). Implement it for your own
/// type to use the same method.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no HTTP response that `http` can read",
    note = "another client's response is classified by `.classify_ok(|response| Some(classification_of_response(response.status(), response.headers())))`",
    note = "`reqwest::Response` needs the feature `reqwest` (`reqwest-0-12` for that of 0.12), and `reqwest::blocking::Response` of 0.13 the feature `reqwest-blocking`"
)]
pub trait HttpResponse {
    /// Returns the status.
    fn status(&self) -> StatusCode;

    /// Returns the headers.
    fn headers(&self) -> &HeaderMap;
}

impl<B> HttpResponse for http::Response<B> {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}

#[cfg(feature = "reqwest")]
impl HttpResponse for reqwest::Response {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}

#[cfg(feature = "reqwest-0-12")]
impl HttpResponse for reqwest012::Response {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}

#[cfg(feature = "reqwest-blocking")]
impl HttpResponse for reqwest::blocking::Response {
    fn status(&self) -> StatusCode {
        self.status()
    }

    fn headers(&self) -> &HeaderMap {
        self.headers()
    }
}

impl<F, T, E, Backoff: Schedule, B, R, Clock> Retrying<F, T, E, Backoff, B, R, Clock> {
    /// Retries an operation that sends one HTTP request by HTTP's rules. The caller gets the last response as it was,
    /// whatever its status.
    ///
    /// | result | decision |
    /// |---|---|
    /// | a response | by its status and hints: [`classification_of_response`](crate::classify::classification_of_response) |
    /// | an error of the client, or tokio's `Elapsed` | by [`verdict_of_error`](crate::classify::verdict_of_error); an unknown error ends the call |
    ///
    /// The method decides if the request is [`repeatable`](Self::repeatable). A POST or PATCH is not: it is not sent
    /// again if the server may have processed it. If it has an idempotency key, set `repeatable(true)`.
    ///
    /// The client is assumed to follow redirects, as reqwest and ureq do. Then a POST is never retried, because a
    /// refusal or a failed connection may concern a later hop. If the client follows none, set
    /// [`redirects_below(false)`](Self::redirects_below): a POST is then retried after 429 or a refused connection.
    ///
    /// Rules for errors and values that are set later take precedence. A refused response is dropped when the next
    /// attempt begins.
    ///
    /// ```
    /// use http::{Method, Response};
    /// use reattempt::operation::retry_blocking;
    /// use reattempt::schedule::Constant;
    ///
    /// let mut answers = [200, 503].into_iter().rev();
    /// let send = || Response::builder().status(answers.next().unwrap_or(200)).body("tea");
    /// let response = retry_blocking(Constant::immediate(), send).http(&Method::GET).call()?;
    /// assert_eq!(response.status(), 200);
    /// # Ok::<(), reattempt::operation::RetryError<http::Error>>(())
    /// ```
    pub fn http(
        self,
        method: &Method,
    ) -> Retrying<F, T, E, Backoff, B, impl Rules<T, E> + use<F, T, E, Backoff, B, R, Clock>, Clock>
    where
        R: Rules<T, E>,
        T: HttpResponse,
        E: Error + 'static,
    {
        let mut by_http = self.with_rules(|rules| HttpRules { rules });
        by_http.safety.repeatable = is_repeatable(method, &HeaderMap::new());
        by_http.safety.redirects.get_or_insert(true);
        by_http
    }

    /// Sets whether the client follows redirects by itself. Default: `true` with [`http`](Self::http), otherwise
    /// `false`.
    ///
    /// With `true`, a failure is no proof that a request was not processed, because an earlier hop may have processed
    /// it. [`Http::redirects_below`](crate::Http::redirects_below) is the same setting of the layers.
    pub fn redirects_below(mut self, follows: bool) -> Self {
        self.safety.redirects = Some(follows);
        self
    }
}

/// HTTP's rules, with the functions that are notified of retries.
struct HttpRules<R> {
    rules: R,
}

impl<T, E, R> Rules<T, E> for HttpRules<R>
where
    R: Rules<T, E>,
    T: HttpResponse,
    E: Error + 'static,
{
    fn of_error(&mut self, error: &E) -> ClassifiedResult {
        let verdict = verdict_of_error(error).unwrap_or_else(|| {
            match causes(error).any(|error| error.is::<tokio::time::error::Elapsed>()) {
                true => Verdict::Transient(Failure::new(FailureKind::Timeout)),
                false => Verdict::Permanent,
            }
        });
        ClassifiedResult { fault: fault_of_error(error), ..ClassifiedResult::from(Classification::new(verdict)) }
    }

    fn of_value(&mut self, value: &T) -> Option<ClassifiedResult> {
        let (status, headers) = (value.status(), value.headers());
        let classification = classification_of_response(status, headers);
        if classification.verdict == Verdict::Success {
            return self.rules.of_value(value);
        }
        Some(ClassifiedResult { code: Some(status.as_u16()), ..ClassifiedResult::from(classification) })
    }

    fn on_retry(&mut self, result: Result<&T, &E>, delay: Duration) {
        self.rules.on_retry(result, delay);
    }
}
