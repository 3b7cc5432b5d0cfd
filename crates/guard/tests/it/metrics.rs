//! Tests of guard metrics: refusals, waits, state changes and places.

use std::time::Duration;

use reattempt::guard::contract::{Admit, Arrival, End, Guard, GuardKind, Health};
use reattempt::guard::handle::ThrottleCounts;
use reattempt::guard::metrics::GuardMetrics;
use reattempt::guard::{
    self, Bulkhead, CircuitBreaker, GuardLayer, Limit, RateLimit, Reason, Refused, SendRate, Throttle,
};
use reattempt::observe::{Event, Observer};
use reattempt_testing_layers::calls::{ONE, Server, TWO};
use reattempt_testing_layers::guard::{Recorder, attempt, refused, timeless};
use reattempt_testing_layers::metrics::Reader;
use tower::Layer;

fn line(labels: &str, value: u64) -> (String, u64) {
    (labels.to_owned(), value)
}

fn breaker(metrics: &GuardMetrics) -> CircuitBreaker {
    timeless().seed(1).with_name("stock").consecutive_failures(5).on_state_change(metrics.state_changes())
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
        ["one.example", "two.example"]
            .map(|host| { line(&format!("destination={host} guard=circuit_breaker reason=open"), 1) })
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
    let (read, start) = (bulkhead.clone(), guard::handle::now());
    metrics.places("stock", move || read.usage_at("one.example", start + Duration::from_secs(7)));
    let admit = || match bulkhead.admit(&Arrival::new("one.example", start)) {
        Admit::Admitted(ticket) | Admit::Waiting(ticket) => ticket,
        Admit::Refused(refused) => panic!("{refused}"),
    };
    let mut tickets: Vec<_> = (0..4).map(|_| admit()).collect();
    let served = End::judged(Health::Served, Duration::ZERO);
    let held = bulkhead.end_ticket(tickets.remove(0), &served, start);
    for (name, value) in [("limit", 3), ("in_flight", 3), ("waiting", 1), ("past_head", 1), ("oldest_past_head", 7)] {
        assert_eq!(reader.of_guard(name), [line("name=stock", value)], "{name}");
    }
    bulkhead.end_ticket(held.unwrap(), &End::Unsent, start);
    assert_eq!(reader.of_guard("past_head"), [line("name=stock", 0)]);
    assert_eq!(reader.of_guard("waiting"), [line("name=stock", 0)]);
}

/// A rate that is not known yet is infinite, and is not recorded.
#[test]
fn rates_are_read_when_collected() {
    let reader = Reader::new();
    let metrics = GuardMetrics::new(&reader.provider);
    let start = Duration::from_secs(100);
    let (limit, rate) = (RateLimit::new(Limit::per_second(10), 5), SendRate::new());
    let throttle = Throttle::new().seed(1);
    let reads = limit.clone();
    metrics.tokens("stock", move || reads.tokens_at("one.example", start));
    let reads = limit.clone();
    metrics.rate("stock", move || reads.limit("one.example"));
    let reads = rate.clone();
    metrics.rate("send", move || reads.limit("one.example"));
    let reads = throttle.clone();
    metrics.throttling("stock", move || reads.counts_at("one.example", start));
    let read = |name| reader.of_guard(name);
    assert_eq!(read("tokens"), [line("name=stock", 5)]);
    assert_eq!(read("rate"), [line("name=stock", 10)]);
    assert_eq!(read("refusal_probability"), [line("name=stock", 0)]);

    assert!(limit.allow_n_at("one.example", 2, start));
    let overloaded = End::judged(Health::Overloaded, Duration::ZERO);
    for _ in 0..100 {
        let arrival = Arrival::new("one.example", start);
        if let Admit::Admitted(ticket) = throttle.admit(&arrival) {
            throttle.end_ticket(ticket, &overloaded, start);
        }
    }
    if let Admit::Admitted(ticket) = rate.admit(&Arrival::new("one.example", start)) {
        rate.end_ticket(ticket, &overloaded, start);
    }
    assert_eq!(read("tokens"), [line("name=stock", 3)]);
    assert_eq!(read("rate").len(), 2);
    // 0.9, in whole numbers.
    assert_eq!(read("refusal_probability"), [line("name=stock", 1)]);
}

#[tokio::test(start_paused = true)]
async fn every_guard_and_reason_has_a_label() {
    let reader = Reader::new();
    let recorder = Recorder::default();
    let layer = GuardLayer::http(recorder.clone());
    let client = layer.observe_with(GuardMetrics::new(&reader.provider)).layer(Server::statuses([200]));
    let refusals = [
        (GuardKind::CIRCUIT_BREAKER, Reason::Open, "guard=circuit_breaker reason=open"),
        (GuardKind::RATE_LIMIT, Reason::RateExceeded, "guard=rate_limit reason=rate_exceeded"),
        (GuardKind::BULKHEAD, Reason::Full, "guard=bulkhead reason=full"),
        (GuardKind::ADAPTIVE_LIMIT, Reason::WaitTooLong, "guard=adaptive_limit reason=wait_too_long"),
        (GuardKind::THROTTLE, Reason::Shed, "guard=throttle reason=shed"),
        (GuardKind::SEND_RATE, Reason::TooLarge, "guard=send_rate reason=too_large"),
        (GuardKind::named(&"own guard"), Reason::Isolated, "guard=own_guard reason=isolated"),
        (GuardKind::UNNAMED, Reason::TooManyRequests, "guard=guard reason=too_many_requests"),
    ];
    for (guard, reason, _) in refusals {
        recorder.refuse(Refused::new(guard, reason));
        client.send(attempt(ONE)).await.unwrap_err();
    }
    let mut expected = refusals.map(|(_, _, labels)| line(labels, 1));
    expected.sort();
    assert_eq!(reader.of_guard("refused"), expected);
}

#[test]
fn every_state_has_a_label() {
    let reader = Reader::new();
    let metrics = GuardMetrics::new(&reader.provider).with_destinations();
    let breaker = breaker(&metrics).spread(0);
    let call = |health, at| {
        let Admit::Admitted(ticket) = breaker.admit(&Arrival::new("one.example", at)) else {
            return;
        };
        breaker.end_ticket(ticket, &End::judged(health, Duration::ZERO), at);
    };
    let at = Duration::from_secs;
    (0..5).for_each(|_| call(Health::Failed, at(100)));
    call(Health::Served, at(130));
    breaker.isolate_at("one.example", at(130));
    let changes = ["closed to=forced open", "closed to=open", "half-open to=closed", "open to=half-open"];
    let expected = changes.map(|change| {
        let change = change.replace(" to=", " name=stock to=");
        line(&format!("destination=one.example from={change}"), 1)
    });
    assert_eq!(reader.of_guard("state_changes"), expected);
}

#[test]
fn waits_have_a_destination_if_asked_for() {
    let reader = Reader::new();
    let metrics = GuardMetrics::new(&reader.provider).with_destinations();
    metrics.on_event("one.example", &Event::Waiting);
    assert_eq!(reader.of_guard("waited"), [line("destination=one.example", 1)]);
}

#[test]
fn instruments_of_guards_have_their_units() {
    let reader = Reader::new();
    let metrics = GuardMetrics::new(&reader.provider);
    metrics.on_event("", &Event::Waiting);
    metrics.on_event("", &Event::Refused { refused: &refused() });
    let breaker = timeless().seed(1).on_state_change(metrics.state_changes());
    breaker.isolate_at("one.example", Duration::ZERO);
    let bulkhead = Bulkhead::new(1);
    let Admit::Admitted(ticket) = bulkhead.admit(&Arrival::new("", Duration::ZERO)) else { panic!("there is a place") };
    let held = bulkhead.end_ticket(ticket, &End::judged(Health::Served, Duration::ZERO), Duration::ZERO);
    assert!(held.is_some());
    metrics.places("", move || bulkhead.usage_at("", Duration::ZERO));
    metrics.tokens("", || 1.0);
    metrics.rate("", || Limit::per_second(1));
    metrics.throttling("", ThrottleCounts::default);
    let all = reader.all();
    let mut units: Vec<_> = all
        .scope_metrics()
        .flat_map(|scope| scope.metrics())
        .map(|metric| (metric.name().trim_start_matches("reattempt.guard."), metric.unit()))
        .collect();
    units.sort_unstable();
    assert_eq!(
        units,
        [
            ("in_flight", "{call}"),
            ("limit", "{call}"),
            ("oldest_past_head", "s"),
            ("past_head", "{call}"),
            ("rate", "{call}/s"),
            ("refusal_probability", "1"),
            ("refused", "{attempt}"),
            ("state_changes", "{change}"),
            ("tokens", "{call}"),
            ("waited", "{attempt}"),
            ("waiting", "{call}"),
        ]
    );
}

#[test]
fn debug_of_guard_metrics() {
    let metrics = GuardMetrics::new(&Reader::new().provider);
    assert_eq!(format!("{metrics:?}"), "GuardMetrics { destinations: false, .. }");
}
