//! reqwest's own retries.

use http::StatusCode;
use reattempt_faults::{Reply, Rule, Server};
use reqwest::retry;

/// By default only requests that the server has not processed are sent again.
#[tokio::test]
async fn default_repeats_refused_streams_alone() {
    let server = Server::http2([Reply::refused_stream()]).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().http2_prior_knowledge().build().unwrap();
    let answer = client.post(server.url("/pay")).body("tea").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    server.ledger().no_unsafe_repeat().bodies_intact().at_most_attempts(2);

    let server = Server::http1([Reply::reset()]).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().build().unwrap();
    client.post(server.url("/pay")).body("tea").send().await.unwrap_err();
    server.ledger().at_most_attempts(1);
}

/// A classifier that ignores the method repeats a payment.
#[tokio::test]
async fn classifier_without_method_is_caught() {
    let server = Server::http1([Reply::status(StatusCode::SERVICE_UNAVAILABLE)]).await.unwrap();
    let busy = retry::for_host("127.0.0.1").no_budget().classify_fn(|attempt| match attempt.status() {
        Some(StatusCode::SERVICE_UNAVAILABLE) => attempt.retryable(),
        _ => attempt.success(),
    });
    let client = reqwest::Client::builder().no_proxy().retry(busy).build().unwrap();
    let answer = client.post(server.url("/pay")).body("tea").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let violation = server.ledger().check(Rule::NoUnsafeRepeat).unwrap_err();
    assert_eq!(violation.arrivals().len(), 2, "{violation}");
}
