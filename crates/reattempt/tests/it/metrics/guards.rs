//! Measurements of guards: refusals, waits, state changes and places.

use std::time::Duration;

use reattempt::guard::metrics::GuardMetrics;
use reattempt::guard::{
    self, Admit, Arrival, Bulkhead, CircuitBreaker, End, Guard, GuardLayer, Health, Limit,
    RateLimit,
};
use tower::Layer;

use crate::calls::support::{ONE, Server, TWO};
use crate::guard::support::attempt;
use crate::metrics::reader::Reader;

fn line(labels: &str, value: u64) -> (String, u64) {
    (labels.to_owned(), value)
}

fn breaker(metrics: &GuardMetrics) -> CircuitBreaker {
    CircuitBreaker::rate()
        .seed(1)
        .with_name("stock")
        .consecutive_failures(5)
        .on_state_change(metrics.state_changes())
}

#[tokio::test(start_paused = true)]
async fn open_breaker_counts_change_and_refusals() {
    let reader = Reader::new();
    let metrics = GuardMetrics::new(&reader.provider);
    let layer = GuardLayer::http(breaker(&metrics)).observe_with(metrics);
    let client = layer.layer(Server::statuses([500]));
    for _ in 0..7 {
        let _ = client.send(attempt(ONE)).await;
    }
    assert_eq!(reader.of_guard("refused"), [line("guard=circuit_breaker reason=open", 2)]);
    assert_eq!(reader.of_guard("state_changes"), [line("from=closed name=stock to=open", 1)]);
    assert!(reader.of_guard("waited").is_empty());
}

#[tokio::test(start_paused = true)]
async fn destinations_are_labels_if_asked_for() {
    let reader = Reader::new();
    let metrics = GuardMetrics::new(&reader.provider).with_destinations();
    let layer = GuardLayer::http(breaker(&metrics)).observe_with(metrics);
    let client = layer.layer(Server::statuses([500]));
    for url in [ONE, TWO] {
        for _ in 0..6 {
            let _ = client.send(attempt(url)).await;
        }
    }
    assert_eq!(
        reader.of_guard("refused"),
        ["one.example", "two.example"].map(|host| {
            line(&format!("destination={host} guard=circuit_breaker reason=open"), 1)
        })
    );
    assert_eq!(reader.of_guard("state_changes").len(), 2);
}

#[tokio::test(start_paused = true)]
async fn waits_and_late_refusals_are_counted() {
    let reader = Reader::new();
    let metrics = GuardMetrics::new(&reader.provider);
    let limit = RateLimit::new(Limit::per_second(1), 1).queue(1, Duration::from_secs(30));
    let client = GuardLayer::http(limit).observe_with(metrics).layer(Server::statuses([200]));
    client.send(attempt(ONE)).await.unwrap();
    let (waits, refused) = tokio::join!(client.send(attempt(ONE)), client.send(attempt(ONE)));
    assert!(waits.is_ok() && refused.is_err());
    assert_eq!(reader.of_guard("waited"), [line("", 1)]);
    assert_eq!(reader.of_guard("refused"), [line("guard=rate_limit reason=full", 1)]);
}

#[tokio::test(start_paused = true)]
async fn places_are_read_when_collected() {
    let reader = Reader::new();
    let metrics = GuardMetrics::new(&reader.provider);
    let bulkhead = Bulkhead::new(3).queue(2, Duration::from_secs(30));
    let (read, start) = (bulkhead.clone(), guard::now());
    metrics.places("stock", move || read.usage("one.example", start + Duration::from_secs(7)));
    let admit = || match bulkhead.admit(&Arrival::new("one.example", start)) {
        Admit::Admitted(ticket) | Admit::Waiting(ticket) => ticket,
        Admit::Refused(refused) => panic!("{refused}"),
    };
    let mut tickets: Vec<_> = (0..4).map(|_| admit()).collect();
    let served = End::judged(Health::Served, Duration::ZERO);
    let held = bulkhead.end(tickets.remove(0), &served, start);
    for (name, value) in
        [("limit", 3), ("in_flight", 3), ("waiting", 1), ("past_head", 1), ("oldest_past_head", 7)]
    {
        assert_eq!(reader.of_guard(name), [line("name=stock", value)], "{name}");
    }
    bulkhead.end(held.unwrap(), &End::Unsent, start);
    assert_eq!(reader.of_guard("past_head"), [line("name=stock", 0)]);
    assert_eq!(reader.of_guard("waiting"), [line("name=stock", 0)]);
}

#[test]
fn debug_of_guard_metrics() {
    let metrics = GuardMetrics::new(&Reader::new().provider);
    assert_eq!(format!("{metrics:?}"), "GuardMetrics { destinations: false, .. }");
}
