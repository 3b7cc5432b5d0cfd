//! The whole page of a client with each kind of part, as text and as JSON.

use std::time::Duration;

use reattempt::endpoints::{Balanced, Endpoints, EndpointsLayer};
use reattempt::error::BoxedError;
use reattempt::guard::{
    AdaptiveLimit, Bulkhead, CircuitBreaker, GuardLayer, Limit, Pace, Pause, RateLimit, SendRate, Throttle,
};
use reattempt::hedge::HedgePolicy;
use reattempt::policies::{PolicyHandle, PolicyStack, PolicyTable};
use reattempt::schedule::{Constant, Responsive};
use reattempt::snapshot::{Inspect, Part, Snapshot};
use reattempt::standard::StandardLayer;
use reattempt::{Http, Retry, RetryBudget, RetryPolicy};
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Cluster, Does, Node, WELL, get};
use tokio::time::advance;
use tower::Layer;

type Guarded = reattempt::guard::Guarded<Balanced<Node>, CircuitBreaker, Http, BoxedError>;
type Policy = RetryPolicy<Http, Constant, RetryBudget, BoxedError>;

/// A client with a breaker above two servers, one of which refuses connections.
struct App {
    client: Retry<Guarded, Policy>,
    policy: Policy,
    breaker: CircuitBreaker,
    endpoints: reattempt::endpoints::EndpointsHandle<Node>,
}

impl App {
    fn new() -> Self {
        let cluster = Cluster::of([Does::Refuse, WELL]);
        let servers = Endpoints::list(["0"]).and_then(|first| first.or_else(["1"])).unwrap();
        let balanced = servers.connect(|name| cluster.client(name)).http();
        let endpoints = balanced.endpoints();
        let breaker = CircuitBreaker::counting();
        let backoff = Constant::new(Duration::from_millis(100));
        let policy = RetryPolicy::http().backoff(backoff).boxed_errors();
        let client = Retry::new(policy.clone(), GuardLayer::http(breaker.clone()).layer(balanced));
        Self { client, policy, breaker, endpoints }
    }

    fn snapshot(&self) -> Snapshot {
        let now = Snapshot::new().add("stock", &self.policy);
        now.add("stock", &self.breaker).add("stock", &self.endpoints)
    }
}

/// An operator sees an ejected server, a breaker that was opened by hand, and the tokens left.
#[tokio::test(start_paused = true)]
async fn page_shows_what_is_in_force() {
    let app = App::new();
    for _ in 0..4 {
        app.client.send(get()).await.unwrap();
    }
    reattempt::guard::handle::CircuitBreakerExt::isolate(&app.breaker, "http://stock.example").unwrap();
    advance(Duration::from_millis(200)).await;
    let out = app.endpoints.view()[0].out.unwrap(); // random
    let expected = format!(
        "\
retry_policy stock: max_attempts 3, max_elapsed 30s, max_server_delay 60s, schedule Constant {{ base: 100ms }}
  budget: rule cautious, capacity 10, refusals 0
circuit_breaker stock: open_time 60s, probes 1
  destination service: state closed, requests 5, failures 1, consecutive_failures 0
  destination stock.example: state forced open, requests 0, failures 0, consecutive_failures 0
endpoints stock: in_service 1, out 1
  endpoint 0: tier 0, weight 1, in_flight 0, picks 1, failing 0.121, out {out:?}, reason no connection
  endpoint 1: tier 1, weight 1, in_flight 0, picks 4, latency 9.511ms, failing 0, price 9.511ms
"
    );
    assert_eq!(app.snapshot().to_string(), expected);
}

/// Each kind of guard, without calls.
#[tokio::test(start_paused = true)]
async fn page_shows_each_kind_of_guard() {
    let standard = StandardLayer::http();
    let now = Snapshot::new()
        .add("a", &(Bulkhead::new(8).queue(4, secs(1)), AdaptiveLimit::vegas()))
        .add("b", &RateLimit::new(Limit::per_second(2), 3))
        .add("c", &SendRate::new())
        .add("d", &Pause::new())
        .add("e", &Throttle::new())
        .add("f", &Pace::new(Responsive::new()))
        .add("g", &standard)
        .add("h", &HedgePolicy::http().budget(RetryBudget::unlimited()))
        .add("i", &RetryBudget::ratio(0.1));
    let expected = "\
guards a
  bulkhead: limit 8, queue 4, longest_wait 1s
  adaptive_limit: initial 20, least 1, most 200
rate_limit b: per_second 2, burst 3, queue 1024, longest_wait 30s
send_rate c: queue 1024, longest_wait 30s
pause d: longest 3600s, queue 1024, longest_wait 30s
throttle e: multiplier 2, max_probability 0.9, window 120s
pace f: interval 0s, waiting 0, calls 0, times_up 0, times_down 0
standard g: total_time 30s, attempt_timeout 10s
  retry_policy: max_attempts 3, max_elapsed 30s, max_server_delay 60s, schedule Exponential { base: 100ms, factor: 2.0, \
cap: Some(5s), jitter: Jitter(Full), clamp_jitter: false }
    budget: rule cautious, capacity 10, refusals 0
  guards
    circuit_breaker: failure_ratio 0.5, min_calls 20, consecutive_failures 20, min_failing_time 2.5s, interval 60s, \
first_open_time 1s, open_time 10s, probes 1
    bulkhead: limit 64
hedge_policy h: max_attempts 2, max_elapsed 30s, max_server_delay 60s
  budget: rule unlimited
budget i: rule ratio, ratio 0.1, capacity 10, min_per_second 0.01, refusals 0
";
    assert_eq!(now.to_string(), expected);
}

/// A table of policies, before and after it is replaced.
#[tokio::test(start_paused = true)]
async fn page_shows_a_table_of_policies() {
    let stack = |attempts| PolicyStack::new(Http::new()).retries(|policy| policy.max_attempts(attempts));
    let servers = EndpointsLayer::http(["https://one.example", "https://two.example"]).unwrap();
    let handle = PolicyHandle::new(PolicyTable::new(stack(2)));
    handle.replace(PolicyTable::new(stack(3)).or(stack(4).endpoints(servers), |_| true));
    let expected = "\
policy_table a: version 1
  policy default: max_attempts 3, max_elapsed 30s, max_server_delay 60s
  policy 1: max_attempts 4, max_elapsed 30s, max_server_delay 60s
    endpoints: in_service 2, out 0
      endpoint https://one.example: tier 0, weight 1, in_flight 0, picks 0, failing 0
      endpoint https://two.example: tier 0, weight 1, in_flight 0, picks 0, failing 0
";
    assert_eq!(Snapshot::new().add("a", &handle).to_string(), expected);
}

#[test]
fn json_has_fields_and_seconds() {
    struct Shop;

    impl Inspect for Shop {
        fn inspect(&self, _: Duration) -> Part {
            let pay = Part::new("destination", "https://pay.example:443").field("tokens", 7.25).field("doubt", 3_u32);
            Part::new("shop", "")
                .field("rule", "cautious")
                .field("on", true)
                .field("wait", Duration::from_micros(1_500_999))
                .field("none", f64::NAN)
                .parts([pay, Part::new("others", "")])
        }
    }

    let expected = serde_json::json!([{
        "kind": "shop", "name": "a", "rule": "cautious", "on": true, "wait_seconds": 1.500999, "none": null,
        "parts": [
            { "kind": "destination", "name": "https://pay.example:443", "tokens": 7.25, "doubt": 3 },
            { "kind": "others", "name": "" },
        ],
    }]);
    assert_eq!(serde_json::to_value(Snapshot::new().add("a", &Shop)).unwrap(), expected);
}
