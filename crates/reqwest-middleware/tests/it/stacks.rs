//! Tests of stacks of layers in the middleware.

use std::time::Duration;

use reattempt::CallOptions;
use reattempt::endpoints::{Endpoints, EndpointsLayer};
use reattempt::fallback::FallbackLayer;
use reattempt::guard::{CircuitBreaker, GuardLayer, Limit, RateLimit, Refused};
use reattempt::hedge::HedgePolicy;
use reattempt::standard::StandardLayer;
use reattempt_reqwest_middleware::{CallError, ChainLayer, ReattemptMiddleware};
use reqwest_middleware::ClientBuilder;
use tokio::time::Instant;
use tower::ServiceBuilder;

use crate::support::{Answer, Server, URL, client, policy};

#[tokio::test(start_paused = true)]
async fn guards_keep_their_state_between_calls() {
    let server = Server::default();
    let limit = RateLimit::new(Limit::per_second(1), 2).no_queue();
    let stack = ServiceBuilder::new().layer(policy().boxed_errors()).layer(GuardLayer::http(limit)).into_inner();
    let client = client(stack, &server);
    for _ in 0..2 {
        client.get(URL).send().await.unwrap();
    }
    let error = client.get(URL).with_extension(CallOptions::new().never_retry()).send().await.unwrap_err();
    assert_eq!(server.seen().len(), 2);
    let call = CallError::of(&error).unwrap();
    let mut causes = std::iter::successors(Some(call as &dyn std::error::Error), |it| it.source());
    assert!(causes.any(|cause| cause.is::<Refused>()), "{call:?}");
}

#[tokio::test(start_paused = true)]
async fn slow_call_is_hedged() {
    let server = Server::new([Answer::Slow(Duration::from_secs(9)), Answer::Slow(Duration::from_secs(1))]);
    let hedges = HedgePolicy::http().delay(Duration::from_secs(2));
    let began = Instant::now();
    let response = client(hedges, &server).get(URL).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (200, 2));
    assert_eq!(began.elapsed(), Duration::from_secs(2 + 1));
}

#[tokio::test(start_paused = true)]
async fn standard_stack_is_a_middleware() {
    let server = Server::statuses([503]);
    let client = client(StandardLayer::http(), &server);
    let response = client.get(URL).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (200, 2));
}

#[tokio::test(start_paused = true)]
async fn options_pass_a_guard_before_the_retries() {
    let server = Server::statuses([503; 9]);
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(ReattemptMiddleware::new(FallbackLayer::http(|_| None)))
        .with(ReattemptMiddleware::new(GuardLayer::http(CircuitBreaker::rate())))
        .with(ReattemptMiddleware::new(policy()))
        .with(server.clone())
        .build();
    let options = CallOptions::new().max_attempts(5).max_elapsed(None);
    let _ = client.get(URL).with_extension(options).send().await.unwrap();
    assert_eq!(server.seen().len(), 5);
}

/// The retry goes to the server that the call has not tried.
#[tokio::test(start_paused = true)]
async fn retries_go_to_another_endpoint() {
    const SERVERS: [&str; 2] = ["http://one.example", "http://two.example"];
    async fn hosts<L>(stack: L) -> Vec<String>
    where
        L: for<'a> ChainLayer<'a> + Send + Sync + 'static,
    {
        let server = Server::statuses([503]);
        let client = client(stack, &server);
        assert_eq!(client.get("http://one.example/7").send().await.unwrap().status(), 200);
        server.seen().into_iter().filter_map(|seen| seen.host).collect()
    }

    let plain =
        ServiceBuilder::new().layer(policy().boxed_errors()).layer(EndpointsLayer::http(SERVERS).unwrap()).into_inner();
    let standard = StandardLayer::http().endpoints(Endpoints::urls(SERVERS).unwrap());
    for mut hosts in [hosts(plain).await, hosts(standard).await] {
        hosts.sort();
        assert_eq!(hosts, ["one.example", "two.example"]);
    }
}
