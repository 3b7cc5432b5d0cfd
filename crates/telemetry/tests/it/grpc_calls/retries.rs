//! Tests of the metrics for a call's retries, transparent retries and hedges, and for the time between attempts.

use reattempt::RetryLayer;
use reattempt::grpc::metrics::RetryMetric;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_grpc::Code;
use reattempt_testing_layers::grpc::{
    Answer, GrpcServer, Lost, call, ends_with, ms, policy, read, trailers_only, with,
};
use reattempt_testing_layers::metrics::{Reader, line};
use reattempt_testing_layers::resets::Resets;
use tower::{Layer, ServiceBuilder, ServiceExt};

/// Returns one stream that the server has refused.
async fn refused() -> Resets {
    Resets::new(h2::Reason::REFUSED_STREAM, 1).await
}

/// Returns the retries, transparent retries, hedges and milliseconds of delay recorded for one call: each with the
/// number of measurements and their sum.
fn told(reader: &Reader) -> [(u64, u64); 4] {
    let names = ["call.retries", "call.transparent_retries", "call.hedges", "call.retry_delay"];
    names.map(|name| match &reader.of(name)[..] {
        [] => (0, 0),
        [(_, count, sum)] => (*count, *sum),
        more => panic!("{more:?}"),
    })
}

/// Makes one call to a server with this script, under this layer.
macro_rules! call_under {
    ($layer:expr, $script:expr) => {{
        let reader = Reader::new();
        let metrics = reader.metrics().enable(RetryMetric::ALL);
        let client = ServiceBuilder::new().layer(metrics.around($layer));
        if let Ok(answer) = client.service(GrpcServer::by($script)).oneshot(call()).await {
            read(answer).await;
        }
        told(&reader)
    }};
}

fn ok() -> Result<Answer, Lost> {
    Ok(ends_with(Code::Ok))
}

fn unavailable() -> Result<Answer, Lost> {
    Ok(trailers_only(Code::Unavailable))
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn call_without_retries_counts_none() {
    let told = call_under!(RetryLayer::new(policy(100)), |_| (50, ok()));
    assert_eq!(told, [(0, 0), (0, 0), (0, 0), (1, 0)]);
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn retries_are_counted_and_waits_added() {
    let told = call_under!(RetryLayer::new(policy(100)), move |number| match number {
        1 | 2 => (50, unavailable()),
        _ => (50, ok()),
    });
    assert_eq!(told, [(1, 2), (0, 0), (0, 0), (1, 200)]);
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn failure_after_last_retry_counts_alike() {
    let told = call_under!(RetryLayer::new(policy(100).max_attempts(2)), |_| (50, unavailable()));
    assert_eq!(told, [(1, 1), (0, 0), (0, 0), (1, 100)]);
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn obs_4_transparent_retries_are_no_retries() {
    let refused = refused().await;
    let told = call_under!(RetryLayer::new(policy(100)), move |number| match number {
        1 => (50, Err(refused.next())),
        _ => (50, ok()),
    });
    assert_eq!(told, [(0, 0), (1, 1), (0, 0), (1, 0)]);
    // Between two retries: the second is the one that is replaced.
    let refused = self::refused().await;
    let told = call_under!(RetryLayer::new(policy(100)), move |number| match number {
        1 => (50, unavailable()),
        2 => (50, Err(refused.next())),
        3 => (50, unavailable()),
        _ => (50, ok()),
    });
    assert_eq!(told, [(1, 2), (1, 1), (0, 0), (1, 200)]);
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn obs_4_a_hook_changes_nothing_of_that() {
    let refused = refused().await;
    let policy = policy(100).before_attempt(|_, _| Box::pin(tokio::time::sleep(ms(10))));
    let told = call_under!(RetryLayer::new(policy), move |number| match number {
        1 => (50, Err(refused.next())),
        2 => (50, unavailable()),
        _ => (50, ok()),
    });
    assert_eq!(told, [(1, 1), (1, 1), (0, 0), (1, 120)]);
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn hedges_are_no_retries_and_no_delay() {
    let hedging = || HedgePolicy::grpc().delay(ms(10)).max_attempts(3);
    let told = call_under!(HedgeLayer::new(hedging()), |_| (50, ok()));
    assert_eq!(told, [(0, 0), (0, 0), (1, 2), (1, 0)]);
    // One that waits for its time while another attempt still runs.
    let told = call_under!(HedgeLayer::new(hedging()), |number| match number {
        1 => (15, unavailable()),
        _ => (50, ok()),
    });
    assert_eq!(told, [(0, 0), (0, 0), (1, 2), (1, 0)]);
    let told = call_under!(HedgeLayer::new(hedging()), |_| (5, ok()));
    assert_eq!(told, [(0, 0), (0, 0), (0, 0), (1, 0)]);
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn obs_4_a_pushback_between_hedges_is_delay() {
    let hedging = HedgePolicy::grpc().delay(ms(10)).max_attempts(2);
    let told = call_under!(HedgeLayer::new(hedging), |number| match number {
        1 => {
            let answer = trailers_only(Code::Unavailable);
            (5, Ok(with(answer, "grpc-retry-pushback-ms", "70")))
        }
        _ => (5, ok()),
    });
    assert_eq!(told, [(0, 0), (0, 0), (1, 1), (1, 70)]);
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn nested_retries_and_hedges_count_apart() {
    let hedging = || HedgeLayer::new(HedgePolicy::grpc().delay(ms(20)).max_attempts(2));
    let retrying = || RetryLayer::new(policy(1));
    // The first attempt is retried at once, and both are hedged; the hedge wins.
    let script = |number| match number {
        1 => (10, unavailable()),
        2 => (1000, ok()),
        3 => (10, unavailable()),
        _ => (10, ok()),
    };
    let told = call_under!(ServiceBuilder::new().layer(hedging()).layer(retrying()), script);
    assert_eq!(told, [(1, 2), (0, 0), (1, 1), (1, 1)]);
    // Both hedges fail, and then the first of two more succeeds.
    let script = |number| match number {
        1 | 2 => (50, unavailable()),
        _ => (50, ok()),
    };
    let told = call_under!(ServiceBuilder::new().layer(retrying()).layer(hedging()), script);
    assert_eq!(told, [(1, 1), (0, 0), (1, 2), (1, 1)]);
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn last_answer_handling_is_no_delay() {
    let late = ServiceBuilder::new()
        .map_future(|answer| async move {
            let answer = answer.await;
            tokio::time::sleep(ms(30)).await;
            answer
        })
        .layer(RetryLayer::new(policy(100).max_attempts(2)));
    let told = call_under!(late, |_| (50, unavailable()));
    assert_eq!(told, [(1, 1), (0, 0), (0, 0), (1, 100)]);
}

// OBS-4
#[tokio::test(start_paused = true)]
async fn wait_cut_short_counts_as_far_as_it_went() {
    let reader = Reader::new();
    let metrics = reader.metrics().enable(RetryMetric::ALL);
    let client = metrics.around(RetryLayer::new(policy(100)));
    let client = client.layer(GrpcServer::by(|_| (50, unavailable())));
    assert!(tokio::time::timeout(ms(120), client.oneshot(call())).await.is_err());
    assert_eq!(told(&reader), [(0, 0), (0, 0), (0, 0), (1, 70)]);
    assert_eq!(reader.of("attempt.duration"), [line("UNAVAILABLE", 1, 50)]);
    assert_eq!(reader.of("call.duration"), [line("CANCELLED", 1, 120)]);
}
