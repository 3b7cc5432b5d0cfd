//! Tests of a client of reqwest 0.12 under the retry layer. The same cases as for reqwest 0.13: its errors, redirects
//! that hide what was carried out, bodies that are sent again, and limits of time.

use std::time::Duration;

use futures_util::stream;
use http::Method;
use reattempt::guard::{CircuitBreaker, GuardLayer};
use reattempt::report::ReportSlot;
use reattempt::reqwest_0_12::{Client012, RequestBuilderExt};
use reattempt::{CallOptions, Http, Report, Retry, RetryBudget, RetryPolicy, StopReason, retry};
use reattempt_schedule_fixed::Constant;
use reattempt_testing_layers::loopback::{answer, nobody, scripted, see_other, seen};
use reqwest012::redirect;
use tower::{BoxError, Layer};

type Policy = RetryPolicy<Http, Constant>;

/// Returns all defaults except the delay, which is zero.
fn policy() -> Policy {
    RetryPolicy::http().backoff(Constant::immediate()).budget(RetryBudget::unlimited())
}

fn bare(redirects: redirect::Policy) -> reqwest012::Client {
    let bare = reqwest012::Client::builder().no_proxy().retry(reqwest012::retry::never()).redirect(redirects);
    bare.timeout(Duration::from_secs(20)).build().unwrap()
}

/// Returns a client as most people build it, which follows redirects, and the same in the retry layer.
fn following() -> (reqwest012::Client, Retry<Client012, Policy>) {
    let http = bare(redirect::Policy::default());
    (http.clone(), Retry::new(policy(), Client012::new(http)))
}

#[tokio::test]
async fn refused_get_is_retried_with_its_url() {
    let server = scripted([answer(503), answer(200)]).await;
    let (http, client) = following();
    let response = http.get(server.url("/a?b=c")).send_with(&client).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(response.url().as_str(), server.url("/a?b=c"));
    assert_eq!(response.extensions().get::<Report>().unwrap().retries(), 1);
    assert_eq!(response.text().await.unwrap(), "");
}

/// Without a layer, `retry()` classifies the client's own responses and errors.
#[tokio::test]
async fn operation_is_retried_by_rules_of_http() {
    let server = scripted([answer(503), answer(200)]).await;
    let http = bare(redirect::Policy::default());
    let get = || http.get(server.url("/")).send();
    let response: reqwest012::Response = retry(Constant::immediate(), get).http(&Method::GET).await.unwrap();
    assert_eq!(response.status(), 200);
    let (_socket, nobody) = nobody().await;
    let call = retry(Constant::immediate(), || http.get(&nobody).send()).http(&Method::GET);
    let error = call.await.unwrap_err();
    assert!(error.error().is_connect() && error.attempts() == 3, "{error:?}");
}

/// The error is reqwest's own, also of a call that was never sent.
#[tokio::test]
async fn failed_connection_is_retried() {
    let ((_socket, nobody), slot) = (nobody().await, ReportSlot::default());
    let (http, client) = following();
    let client = client.with_options(CallOptions::new().report_to(&slot));
    let error = http.get(nobody).send_with(&client).await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    assert_eq!(slot.take().unwrap().retries(), 2);
    let error = http.get("no URL").send_with(&client).await.unwrap_err();
    assert!(error.is_builder() && slot.take().is_none(), "{error:?}");
}

/// The request's own timeout limits each attempt, and a GET whose attempt timed out is retried.
#[tokio::test(start_paused = true)]
async fn timeout_of_a_request_limits_attempts() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (slot, began) = (ReportSlot::default(), tokio::time::Instant::now());
    let (http, client) = following();
    let client = client.with_options(CallOptions::new().report_to(&slot));
    let call = http.get(format!("http://{}/", silent.local_addr().unwrap())).timeout(Duration::from_secs(1));
    let error = call.send_with(&client).await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(slot.take().unwrap().retries(), 2);
}

/// A form responds to its POST with a redirect to itself, and is then too busy to show the result.
#[tokio::test]
async fn redirected_refused_post_is_not_repeated() {
    let server = scripted([see_other("/form"), answer(429), answer(200)]).await;
    let (http, client) = following();
    let response = http.post(server.url("/form")).body("pay").send_with(&client).await.unwrap();
    assert_eq!(response.status(), 429);
    let report = response.extensions().get::<Report>().unwrap();
    assert_eq!(report.stop_reason(), StopReason::EarlierHop);
    assert_eq!(seen(&server), ["POST /form", "GET /form"]);
}

/// The first hop has carried the POST out, and the second was never reached.
#[tokio::test]
async fn redirected_unsent_post_is_not_repeated() {
    let ((_socket, nobody), slot) = (nobody().await, ReportSlot::default());
    let server = scripted([see_other(&nobody)]).await;
    let (http, client) = following();
    let client = client.with_options(CallOptions::new().report_to(&slot));
    http.post(server.url("/form")).body("pay").send_with(&client).await.unwrap_err();
    assert_eq!(seen(&server), ["POST /form"]);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::EarlierHop);
}

/// A guard changes the type of the response's body and of the error.
#[tokio::test]
async fn stack_with_a_guard_sends_a_builder() {
    let server = scripted([answer(503), answer(200)]).await;
    let http = bare(redirect::Policy::default());
    let guarded = GuardLayer::http(CircuitBreaker::rate()).layer(Client012::new(http.clone()));
    let client = Retry::new(policy().boxed_errors(), guarded);
    let sent: Result<_, BoxError> = http.get(server.url("/")).send_with(&client).await;
    assert_eq!(sent.unwrap().status(), 200);
}

/// Without redirects, a 429 proves that nothing was carried out, and the body is sent again: from memory and streamed.
#[tokio::test]
async fn bodies_are_sent_again() {
    for streamed in [false, true] {
        let server = scripted([answer(429), answer(200)]).await;
        let http = bare(redirect::Policy::none());
        let policy = policy().protocol(|http| http.redirects_below(false));
        let client = Retry::new(policy, Client012::new(http.clone()));
        let chunks = stream::iter([Ok::<_, std::io::Error>("p"), Ok("ay")]);
        let body = if streamed { reqwest012::Body::wrap_stream(chunks) } else { "pay".into() };
        let response = http.post(server.url("/")).body(body).send_with(&client).await.unwrap();
        assert_eq!(response.status(), 200, "{streamed}");
        assert_eq!(seen(&server), ["POST /", "POST /"]);
    }
}
