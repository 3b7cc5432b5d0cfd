//! `reqwest::blocking` and `ureq` with HTTP's rules, against a server that fails.
//!
//! `cargo run --example blocking`

use std::error::Error;
use std::time::Duration;

use http::header::RETRY_AFTER;
use http::{HeaderValue, Method, StatusCode};
use reattempt::classify::{IDEMPOTENCY_KEY, new_idempotency_key};
use reattempt::operation::{Operations, retry_blocking};
use reattempt::report::ReportSlot;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, RetryPolicy, StopReason};
use reattempt_faults::{Reply, Server};
use reqwest::blocking::Client;
use ureq::Agent;

fn main() -> Result<(), Box<dyn Error>> {
    // The server needs a runtime. The clients do not: they run on this thread.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let start = |script: Vec<Reply>| runtime.block_on(Server::http1(script));
    // All calls to one server share this policy, and so its budget.
    let policy = RetryPolicy::operations().backoff(Constant::new(Duration::from_millis(20)));

    let server = start(vec![Reply::status(StatusCode::SERVICE_UNAVAILABLE), busy_for("1")])?;
    with_reqwest(&policy, &server)?;
    server.ledger().no_unsafe_repeat().at_most_attempts(3);

    let server = start(vec![Reply::reset(), busy_for("1")])?;
    with_ureq(&policy, &server)?;
    server.ledger().no_unsafe_repeat().at_most_attempts(3);

    // The server carried the order out, and the connection closed before its answer.
    let server = start(vec![Reply::reset()])?;
    let client = reqwest_client()?;
    let send = || client.post(server.url("/orders")).body("tea").send();
    let lost = retry_blocking(&policy, send).http(&Method::POST).call().err().ok_or("an error")?;
    println!("POST: {lost}");
    assert_eq!((lost.attempts(), lost.stop_reason()), (1, StopReason::NotRepeatable));
    server.ledger().no_unsafe_repeat().at_most_attempts(1);

    // With a key, the server recognises the second attempt.
    let server = start(vec![Reply::reset()])?;
    let key = new_idempotency_key();
    let send = || client.post(server.url("/orders")).header(IDEMPOTENCY_KEY, &key).body("tea").send();
    let served = retry_blocking(&policy, send).http(&Method::POST).repeatable(true).call()?;
    println!("POST with a key: {}", served.status());
    server.ledger().no_unsafe_repeat().bodies_intact().at_most_attempts(2);

    outage(start(vec![Reply::status(StatusCode::BAD_GATEWAY); 6])?)
}

fn reqwest_client() -> reqwest::Result<Client> {
    Client::builder()
        .timeout(Duration::from_secs(5))
        .retry(reqwest::retry::never())
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .build()
}

fn ureq_agent() -> Agent {
    let settings = Agent::config_builder()
        .http_status_as_error(false) // the headers of a refusal have the server's delay
        .max_redirects(0)
        .timeout_global(Some(Duration::from_secs(5)))
        .proxy(None);
    settings.build().into()
}

/// Returns the refusal of a server that asks for this delay.
fn busy_for(seconds: &'static str) -> Reply {
    Reply::status(StatusCode::TOO_MANY_REQUESTS).header(RETRY_AFTER, HeaderValue::from_static(seconds))
}

fn with_reqwest(policy: &RetryPolicy<Operations, Constant>, server: &Server) -> Result<(), Box<dyn Error>> {
    let (client, slot) = (reqwest_client()?, ReportSlot::default());
    let response = retry_blocking(policy, || client.get(server.url("/orders/7")).send())
        .http(&Method::GET)
        .notify_ok(|refused, delay| println!("reqwest: {}, again in {delay:?}", refused.status()))
        .with_options(CallOptions::new().report_to(&slot))
        .call()?;
    let report = slot.take().ok_or("a report")?;
    println!("reqwest: {}\n{report}\n", response.status());
    assert_eq!(response.status(), StatusCode::OK);
    assert!(report.total_delay() >= Duration::from_secs(1), "the server asked for a second");
    Ok(())
}

fn with_ureq(policy: &RetryPolicy<Operations, Constant>, server: &Server) -> Result<(), Box<dyn Error>> {
    let (agent, slot) = (ureq_agent(), ReportSlot::default());
    let mut response = retry_blocking(policy, || agent.put(server.url("/orders/7")).send("tea"))
        .http(&Method::PUT)
        .notify(|error, delay| println!("ureq: {error}, again in {delay:?}"))
        .notify_ok(|refused, delay| println!("ureq: {}, again in {delay:?}", refused.status()))
        .with_options(CallOptions::new().report_to(&slot))
        .call()?;
    println!("ureq: {} {:?}\n", response.status(), response.body_mut().read_to_string()?);
    assert_eq!(response.status(), StatusCode::OK);
    let report = slot.take().ok_or("a report")?;
    assert!(report.total_delay() >= Duration::from_secs(1), "the server asked for a second");
    Ok(())
}

/// Four calls during an outage: the budget stops the retries, and each caller gets the server's own answer.
fn outage(server: Server) -> Result<(), Box<dyn Error>> {
    let policy = RetryPolicy::operations().backoff(Constant::immediate());
    let agent = ureq_agent();
    let mut stops = Vec::new();
    for _ in 0..4 {
        let slot = ReportSlot::default();
        let options = CallOptions::new().report_to(&slot);
        let get = || agent.get(server.url("/orders/7")).call();
        let answer = retry_blocking(&policy, get).http(&Method::GET).with_options(options).call()?;
        assert_eq!(answer.status(), StatusCode::BAD_GATEWAY);
        stops.push(slot.take().ok_or("a report")?.stop_reason());
    }
    println!("outage: {stops:?}");
    assert_eq!(stops.last(), Some(&StopReason::BudgetExhausted));
    Ok(())
}
