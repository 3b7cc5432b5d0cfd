//! Tests of stacks of layers in the middleware.

use std::sync::Arc;
use std::time::Duration;

use http::Extensions;
#[cfg(feature = "opentelemetry")]
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, Metric, MetricData};
#[cfg(feature = "opentelemetry")]
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
#[cfg(feature = "opentelemetry")]
use reattempt::Report;
use reattempt::endpoints::{Endpoints, EndpointsLayer};
use reattempt::fallback::FallbackLayer;
use reattempt::guard::{CircuitBreaker, GuardLayer, Limit, RateLimit, Refused};
use reattempt::hedge::HedgePolicy;
use reattempt::policies::{PolicyHandle, PolicyStack, PolicyTable, TableBudget};
use reattempt::standard::StandardLayer;
#[cfg(feature = "opentelemetry")]
use reattempt::telemetry::HttpTelemetry;
use reattempt::{CallOptions, Http, PeekBodyLayer, RetryBudget};
use reattempt_reqwest_middleware::{CallError, ChainLayer, ReattemptMiddleware};
use reqwest::{Request, Response};
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};
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

// B-5
#[tokio::test(start_paused = true)]
async fn broken_body_is_sent_again() {
    let server = Server::new([Answer::Torn]);
    let stack = ServiceBuilder::new().layer(policy().boxed_errors()).layer(PeekBodyLayer::new()).into_inner();
    let response = client(stack, &server).get(URL).send().await.unwrap();
    assert_eq!((response.text().await.unwrap(), server.seen().len()), (String::new(), 2));
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
/// Nested middlewares send what nested layers send, whatever is between them.
// trap 28
#[tokio::test(start_paused = true)]
async fn nested_middlewares_multiply_no_attempts() {
    let three = |nested| ReattemptMiddleware::new(policy().nested(nested));
    let guard = || ReattemptMiddleware::new(GuardLayer::http(CircuitBreaker::rate()));
    for (outer, between, inner, attempts) in
        [(true, None, true, 3), (true, None, false, 3), (false, None, true, 9), (true, Some(false), true, 3)]
    {
        let server = Server::statuses([503; 99]);
        let mut client = ClientBuilder::new(reqwest::Client::new()).with(three(outer)).with(guard());
        if let Some(nested) = between {
            client = client.with(three(nested));
        }
        let client = client.with(three(inner)).with(server.clone()).build();
        for calls in 1..=2 {
            let response = client.get(URL).send().await.unwrap();
            let seen = server.seen().len();
            assert_eq!((response.status().as_u16(), seen), (503, calls * attempts), "{outer} {between:?} {inner}");
        }
    }
}

/// A middleware between two nested ones may send the request anew. Neither it nor the next call of the same extensions
/// finds a marker that is not its own.
// trap 28
#[tokio::test(start_paused = true)]
async fn markers_stay_inside_their_call() {
    struct Twice;
    #[async_trait::async_trait]
    impl Middleware for Twice {
        async fn handle(&self, request: Request, extensions: &mut Extensions, next: Next<'_>) -> Result<Response> {
            let copy = request.try_clone().unwrap();
            next.clone().run(copy, extensions).await?;
            next.run(request, extensions).await
        }
    }
    let server = Server::statuses([503; 99]);
    let nested = || ReattemptMiddleware::new(policy().nested(true));
    let client = ClientBuilder::new(reqwest::Client::new()).with(Twice).with(nested()).with(Twice).with(nested());
    client.with(server.clone()).build().get(URL).send().await.unwrap();
    assert_eq!(server.seen().len(), 2 * 3 * 2);
}

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

/// The policies of a table, and the options of one call above them.
#[tokio::test(start_paused = true)]
async fn policy_table_is_a_middleware() {
    let attempts = |most| {
        PolicyStack::new(Http::new())
            .retries(|retries| retries.max_attempts(most).budget(Arc::new(RetryBudget::unlimited()) as TableBudget))
    };
    let table = PolicyTable::new(attempts(2)).or(attempts(4), |request| request.path() == "/patient");
    let handle = PolicyHandle::new(table);
    let server = Server::statuses([503; 99]);
    let client = client(handle.layer(), &server);
    let mut seen = 0;
    let mut sent = async |path, options| {
        let url = format!("http://orders.example{path}");
        let _ = client.get(url).with_extension(options).send().await.unwrap();
        server.seen().len() - std::mem::replace(&mut seen, server.seen().len())
    };
    assert_eq!(sent("/", CallOptions::new()).await, 2);
    assert_eq!(sent("/patient", CallOptions::new()).await, 4);
    assert_eq!(sent("/patient", CallOptions::new().max_attempts(3)).await, 3);
    handle.replace(PolicyTable::new(attempts(1)));
    assert_eq!(sent("/patient", CallOptions::new()).await, 1);
}

/// One measurement of the call and one of each attempt. The options of the call reach the retries.
#[cfg(feature = "opentelemetry")]
#[tokio::test(start_paused = true)]
async fn telemetry_is_around_the_retries() {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let server = Server::statuses([503; 9]);
    let client = client(HttpTelemetry::new().metrics(&provider).around(policy()), &server);
    let options = CallOptions::new().max_attempts(5);
    let response = client.get(URL).with_extension(options).send().await.unwrap();
    assert_eq!((server.seen().len(), response.extensions().get::<Report>().unwrap().retries()), (5, 4));

    provider.force_flush().unwrap();
    let exported = exporter.get_finished_metrics().unwrap();
    let metrics = exported.iter().flat_map(|all| all.scope_metrics()).flat_map(|scope| scope.metrics());
    let counts: Vec<_> = metrics.filter_map(|metric| Some((metric.name(), count(metric)?))).collect();
    for (name, expected) in [("http.client.request.duration", 5), ("reattempt.http.call.duration", 1)] {
        assert!(counts.contains(&(name, expected)), "{counts:?}");
    }
}

/// Returns the number of measurements of a histogram.
#[cfg(feature = "opentelemetry")]
fn count(metric: &Metric) -> Option<u64> {
    match metric.data() {
        AggregatedMetrics::F64(MetricData::Histogram(histogram)) => {
            Some(histogram.data_points().map(|point| point.count()).sum())
        }
        _ => None,
    }
}
