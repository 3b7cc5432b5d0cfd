//! Tests of operations that return HTTP responses.

use std::cell::Cell;
use std::future::ready;
use std::io::{self, ErrorKind};
use std::time::Duration;

use http::{Method, Response};
use reattempt::classify::classification_of_response;
use reattempt::operation::retry_blocking;
use reattempt::report::{AttemptOutcome, ReportSlot};
use reattempt::{CallOptions, RetryPolicy, Verdict, retry};
use reattempt_core::{FailureKind, ServerHint, StopReason};
use reattempt_faults::{Reply, Server};
use reattempt_schedule_fixed::Constant;
use tokio::time::Instant;

use super::SECOND;

fn response(status: u16) -> Response<&'static str> {
    Response::builder().status(status).body("kept").unwrap()
}

/// Makes one call whose attempts end like this, and returns the attempts and the stop reason.
fn attempts_of(method: &Method, end: impl Fn() -> io::Result<Response<&'static str>>) -> (u32, StopReason) {
    let (calls, slot) = (Cell::new(0), ReportSlot::default());
    let operation = || {
        calls.set(calls.get() + 1);
        end()
    };
    let options = CallOptions::new().report_to(&slot);
    let _ = retry_blocking(Constant::immediate(), operation).http(method).with_options(options).call();
    (calls.get(), slot.take().unwrap().stop_reason())
}

// trap 24
#[test]
fn each_method_follows_status_table() {
    use StopReason::{AttemptsExhausted, EarlierHop, NotRepeatable, Permanent, Succeeded};
    for (method, status, expected) in [
        (Method::GET, 200, (1, Succeeded)),
        (Method::GET, 301, (1, Succeeded)),
        (Method::GET, 404, (1, Permanent)),
        (Method::GET, 429, (3, AttemptsExhausted)),
        (Method::GET, 501, (1, Permanent)),
        (Method::PUT, 503, (3, AttemptsExhausted)),
        (Method::POST, 200, (1, Succeeded)),
        (Method::POST, 429, (1, EarlierHop)),
        (Method::POST, 503, (1, NotRepeatable)),
    ] {
        assert_eq!(attempts_of(&method, || Ok(response(status))), expected, "{method} {status}");
    }
}

#[test]
fn each_method_follows_error_walk() {
    use StopReason::{AttemptsExhausted, EarlierHop, NotRepeatable, Permanent};
    for (method, kind, expected) in [
        (Method::GET, ErrorKind::ConnectionReset, (3, AttemptsExhausted)),
        (Method::GET, ErrorKind::PermissionDenied, (1, Permanent)),
        (Method::POST, ErrorKind::ConnectionReset, (1, NotRepeatable)),
        (Method::POST, ErrorKind::ConnectionRefused, (1, EarlierHop)),
    ] {
        assert_eq!(attempts_of(&method, || Err(kind.into())), expected, "{method} {kind}");
    }
}

// trap 24, trap 48
/// With a client that follows no redirects, a proof concerns the only hop.
#[test]
fn post_is_retried_after_proof_of_only_hop() {
    let tries = |end: fn() -> io::Result<Response<&'static str>>| {
        let calls = Cell::new(0);
        let operation = || {
            calls.set(calls.get() + 1);
            end()
        };
        let _ = retry_blocking(Constant::immediate(), operation).redirects_below(false).http(&Method::POST).call();
        calls.get()
    };
    assert_eq!(tries(|| Ok(response(429))), 3);
    assert_eq!(tries(|| Err(ErrorKind::ConnectionRefused.into())), 3);
    assert_eq!(tries(|| Ok(response(503))), 1);
    assert_eq!(tries(|| Err(ErrorKind::ConnectionReset.into())), 1);
}

#[tokio::test(start_paused = true)]
async fn post_with_key_is_repeated() {
    let calls = Cell::new(0);
    let call = retry(Constant::immediate(), || {
        calls.set(calls.get() + 1);
        ready(io::Result::Ok(response(503)))
    });
    let refused = call.http(&Method::POST).repeatable(true).await.unwrap();
    assert_eq!((calls.get(), refused.status().as_u16(), refused.into_body()), (3, 503, "kept"));
}

// trap 18
#[tokio::test(start_paused = true)]
async fn retry_after_is_obeyed() {
    let started = Instant::now();
    let mut calls = 0;
    let call = retry(RetryPolicy::operations().seed(7), || {
        calls += 1;
        let mut answer = response(if calls == 1 { 503 } else { 200 });
        answer.headers_mut().insert("retry-after", "7".parse().unwrap());
        ready(io::Result::Ok(answer))
    });
    assert_eq!(call.http(&Method::GET).await.unwrap().status(), 200);
    let waited = started.elapsed();
    assert!(waited >= 7 * SECOND && waited <= 8 * SECOND, "{waited:?}");
}

#[tokio::test(start_paused = true)]
async fn own_conditions_precede_table() {
    let mut calls = 0;
    let call = retry(Constant::immediate(), || {
        calls += 1;
        ready(io::Result::Ok(response(if calls == 1 { 404 } else { 503 })))
    });
    let own = |answer: &Response<_>| match answer.status().as_u16() {
        404 => Some(Verdict::transient()),
        503 => Some(Verdict::Permanent),
        _ => None,
    };
    assert_eq!(call.http(&Method::GET).classify_ok(own).await.unwrap().status(), 503);
    assert_eq!(calls, 2);
}

#[test]
fn report_has_code_of_each_response() {
    let (slot, statuses) = (ReportSlot::default(), Cell::new(503));
    let call = retry_blocking(Constant::immediate(), || io::Result::Ok(response(statuses.replace(404))));
    let answer = call.http(&Method::GET).with_options(CallOptions::new().report_to(&slot)).call().unwrap();
    assert_eq!(answer.status(), 404);
    let report = slot.take().unwrap();
    let outcomes = report.attempts().iter().map(|attempt| &attempt.outcome).collect::<Vec<_>>();
    assert!(
        matches!(
            outcomes[..],
            [AttemptOutcome::Failed { failure, .. }, AttemptOutcome::PermanentFailure { code: Some(404), .. }]
                if failure.code() == Some(503) && failure.kind() == FailureKind::Server
        ),
        "{outcomes:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn elapsed_attempt_is_transient() {
    let call = retry(Constant::immediate(), || async {
        tokio::time::timeout(SECOND, std::future::pending::<Response<()>>()).await
    });
    let error = call.http(&Method::GET).await.unwrap_err();
    assert_eq!((error.attempts(), error.stop_reason()), (3, StopReason::AttemptsExhausted));
}

#[test]
fn response_is_classified_with_hints() {
    let mut answer = response(429);
    answer.headers_mut().insert("retry-after", "2".parse().unwrap());
    let found = classification_of_response(answer.status(), answer.headers());
    assert_eq!(found.hint, ServerHint::After(Duration::from_secs(2)));
    assert!(matches!(found.verdict, Verdict::NotProcessed(_)));
    answer.headers_mut().insert("x-should-retry", "false".parse().unwrap());
    assert_eq!(classification_of_response(answer.status(), answer.headers()).hint, ServerHint::Stop);
    *answer.status_mut() = http::StatusCode::OK;
    assert_eq!(classification_of_response(answer.status(), answer.headers()), Verdict::Success.into());
}

// trap 24
#[tokio::test]
async fn post_closed_after_sending_is_sent_once() {
    let server = Server::http1([Reply::reset()]).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
    let send = || client.post(server.url("/orders")).body("tea").send();
    let error = retry(Constant::immediate(), send).http(&Method::POST).redirects_below(false).await.unwrap_err();
    assert_eq!((error.attempts(), error.stop_reason()), (1, StopReason::NotRepeatable));
    server.ledger().no_unsafe_repeat().at_most_attempts(1);
}
