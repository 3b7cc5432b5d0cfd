//! reqwest-retry, a middleware of reqwest-middleware.

use std::time::Duration;

use http::StatusCode;
use reattempt_faults::{Reply, Rule, Server};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;

fn client() -> ClientWithMiddleware {
    let delay = Duration::from_millis(1);
    let policy = ExponentialBackoff::builder().retry_bounds(delay, delay).build_with_max_retries(2);
    let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build().unwrap();
    ClientBuilder::new(client).with(RetryTransientMiddleware::new_with_policy(policy)).build()
}

#[tokio::test]
async fn middleware_retries_a_busy_server() {
    let server = Server::http1([Reply::status(StatusCode::SERVICE_UNAVAILABLE)]).await.unwrap();
    assert_eq!(client().get(server.url("/orders")).send().await.unwrap().status(), StatusCode::OK);
    server.ledger().no_unsafe_repeat().bodies_intact().at_most_attempts(2);
}

/// It repeats a POST whose response was lost.
#[tokio::test]
async fn middleware_repeats_a_lost_payment() {
    let server = Server::http1([Reply::reset()]).await.unwrap();
    let answer = client().post(server.url("/pay")).body("tea").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let violation = server.ledger().check(Rule::NoUnsafeRepeat).unwrap_err();
    assert_eq!(violation.arrivals().len(), 2, "{violation}");
}
