//! Rules for the bodies of AWS services.

#[cfg(feature = "json")]
use http::HeaderMap;
use reattempt_core::{Classification, Failure, FailureKind, Verdict};
use reattempt_http::xml_error_code;

#[cfg(feature = "json")]
use super::json_text;
use crate::call::outcome::Outcome;

/// The codes of a request that was refused because of its rate.
const THROTTLED: [&str; 14] = [
    "BandwidthLimitExceeded",
    "EC2ThrottledException",
    "LimitExceededException",
    "PriorRequestNotComplete",
    "ProvisionedThroughputExceededException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "SlowDown",
    "ThrottledException",
    "Throttling",
    "ThrottlingException",
    "TooManyRequestsException",
    "TransactionInProgressException",
];

/// The codes of a request that failed at the server.
const TRANSIENT: [&str; 6] = [
    "InternalError",
    "InternalFailure",
    "InternalServerError",
    "RequestTimeout",
    "RequestTimeoutException",
    "ServiceUnavailable",
];

/// Classifies the errors of AWS's JSON protocols, such as those of DynamoDB, Kinesis, SQS and Lambda. A rule for a
/// `PeekBodyLayer`.
///
/// | response other than 2xx, with a code | verdict |
/// |---|---|
/// | one of the throttling codes of AWS's own clients, such as `ProvisionedThroughputExceededException` behind a 400 | not processed, throttled |
/// | `InternalError`, `InternalFailure`, `InternalServerError`, `RequestTimeout`, `RequestTimeoutException`, `ServiceUnavailable` | transient |
/// | any other | default: by its status |
///
/// The code is in the header `x-amzn-errortype`, otherwise in the member `__type` or `code` of the body. A namespace
/// before `#` and a URL after `:` are ignored. `LimitExceededException` is a throttle to AWS's clients; where it is a
/// fixed quota, the retries are in vain.
///
/// Sources: [error handling with
/// DynamoDB](https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html); the constants of
/// [service-error-classification](https://github.com/smithy-lang/smithy-typescript/blob/main/packages/service-error-classification/src/constants.ts)
/// in AWS's clients.
///
/// ```
/// use reattempt::{PeekBodyLayer, RetryLayer, RetryPolicy, classify, profile};
/// use tower::ServiceBuilder;
///
/// let builder = ServiceBuilder::new()
///     .layer(RetryLayer::new(RetryPolicy::http().profile(profile::aws())))
///     .layer(PeekBodyLayer::new().classify(classify::aws_json));
/// ```
#[cfg(feature = "json")]
pub fn aws_json(outcome: Outcome<'_>) -> Option<Classification> {
    let (status, headers, body) = (outcome.status()?, outcome.headers()?, outcome.body()?);
    if status.is_success() {
        return None;
    }
    let of_body = || json_text(body, &["__type"]).or_else(|| json_text(body, &["code"]));
    let code = error_type(headers).or_else(of_body)?;
    let code = code.rsplit('#').next().unwrap_or_default();
    verdict_of(code.split(':').next().unwrap_or_default().trim())
}

#[cfg(feature = "json")]
fn error_type(headers: &HeaderMap) -> Option<String> {
    Some(headers.get("x-amzn-errortype")?.to_str().ok()?.to_owned())
}

/// Classifies the errors of AWS's XML protocols, such as those of S3 and STS. A rule for a `PeekBodyLayer`.
///
/// | response with an `Error` or `ErrorResponse` as its root | verdict |
/// |---|---|
/// | a throttling code, such as `SlowDown` | not processed, throttled |
/// | a code such as `InternalError`, also behind a 200 | transient |
/// | any other code behind a 2xx | permanent |
/// | any other code | default: by its status |
///
/// S3 may answer `CompleteMultipartUpload` and `CopyObject` with 200, send blanks for minutes, and then send an error.
/// Such a call needs a `within` of the longest time that it may take, and its POST the option
/// [`repeatable`](crate::CallOptions::repeatable). A 2xx to GET or HEAD is never an error, because a stored object may
/// look like one.
///
/// Sources: [CompleteMultipartUpload](https://docs.aws.amazon.com/AmazonS3/latest/API/API_CompleteMultipartUpload.html),
/// [CopyObject](https://docs.aws.amazon.com/AmazonS3/latest/API/API_CopyObject.html), and those of `aws_json`.
///
/// ```
/// use std::time::Duration;
/// use reattempt::{PeekBodyLayer, classify};
///
/// let layer = PeekBodyLayer::new().within(Duration::from_secs(600)).classify(classify::aws_xml);
/// ```
pub fn aws_xml(outcome: Outcome<'_>) -> Option<Classification> {
    let (status, body) = (outcome.status()?, outcome.body()?);
    if status.is_success() && matches!(outcome.method(), None | Some("GET" | "HEAD")) {
        return None;
    }
    let code = xml_error_code(body)?;
    verdict_of(code).or_else(|| status.is_success().then(|| Verdict::Permanent.into()))
}

fn verdict_of(code: &str) -> Option<Classification> {
    if THROTTLED.contains(&code) {
        return Some(Verdict::throttled().into());
    }
    let transient = Verdict::Transient(Failure::new(FailureKind::Server));
    TRANSIENT.contains(&code).then(|| transient.into())
}
