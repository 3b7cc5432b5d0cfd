//! Tests of the standard stack over several servers: retries or hedges, a breaker for all, and places for each.

use std::collections::{HashMap, HashSet};

use http::{Request, StatusCode};
use reattempt::endpoints::{Endpoints, Urls, seed_picks};
use reattempt::guard::handle::{BreakerState, CircuitBreakerExt};
use reattempt::guard::{Bulkhead, CircuitBreaker, GuardLayer, Refused};
use reattempt::hedge::HedgePolicy;
use reattempt::standard::{StandardClient, StandardDirectedClient, StandardLayer};
use reattempt::{Report, RetryBudget, RetryPolicy, TimedOut};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Body, Cluster, Does, Node, WELL};
use reattempt_testing_layers::guard::timeless;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{BoxError, Layer, Service, ServiceExt};

/// Lists the servers of a cluster as base URLs. Picks are seeded.
fn urls(cluster: &Cluster) -> Endpoints<Urls> {
    seed_picks(1);
    Endpoints::urls(cluster.names().iter().map(|name| format!("http://{name}/"))).unwrap()
}

/// Returns a request for the first server, which is the base of all.
fn request(method: &str) -> Request<Body> {
    Request::builder().method(method).uri("http://0/").body(Body::default()).unwrap()
}

/// Returns the stack with seeded delays, a known breaker and no limit on retries.
fn stack(breaker: &CircuitBreaker) -> StandardLayer {
    let policy = RetryPolicy::http().budget(RetryBudget::unlimited()).seed(1).boxed_errors();
    StandardLayer::http().retry(policy).limits(breaker.clone(), Bulkhead::new(64))
}

/// A dead server of three costs no call and no delay, even for a POST, and the report has the names.
// E-18
#[tokio::test(start_paused = true)]
async fn standard_stack_goes_elsewhere_at_once() {
    let cluster = Cluster::of([Does::Refuse, WELL, WELL]);
    let client = StandardLayer::http().endpoints(urls(&cluster)).checked().unwrap().layer(cluster.client(""));
    let mut repeated = 0;
    for _ in 0..200 {
        let began = Instant::now();
        let response = client.send(request("POST")).await.unwrap();
        assert_eq!((response.status(), began.elapsed()), (StatusCode::OK, ms(10)));
        let seen = cluster.seen();
        if let Some(report) = Report::of(&response) {
            let names = report.attempts().iter().map(|attempt| attempt.endpoint.as_deref().unwrap());
            let urls = seen.iter().map(|name| format!("http://{name}"));
            assert_eq!(names.collect::<Vec<_>>(), urls.collect::<Vec<_>>());
            repeated += 1;
        }
        assert_eq!(seen.len(), if Report::of(&response).is_some() { 2 } else { 1 });
    }
    // Five failures in a row put it out, and each return costs one more.
    assert!((1..=8).contains(&repeated), "{repeated}");
}

/// One bad server of three does not open the breaker of the service, whatever it does, with one call at a time and with
/// many.
#[tokio::test(start_paused = true)]
async fn one_bad_server_opens_no_breaker() {
    for does in [Does::Refuse, Does::Reset, Does::Status(503), Does::Status(500), Does::Hang] {
        for at_once in [1, 30] {
            let cluster = Cluster::of([does, WELL, WELL]);
            let breaker = CircuitBreaker::rate();
            let layer = stack(&breaker).total_time(secs(20)).attempt_timeout(secs(1)).endpoints(urls(&cluster));
            let client = layer.layer(cluster.client(""));
            for _ in 0..30 {
                let mut calls = JoinSet::new();
                for _ in 0..at_once {
                    calls.spawn(client.send(request("GET")));
                }
                for response in calls.join_all().await {
                    assert_eq!(response.unwrap().status(), StatusCode::OK, "{does:?}, {at_once}");
                }
                assert_eq!(breaker.state("0"), BreakerState::Closed, "{does:?}, {at_once}: {:?}", breaker.counts("0"));
            }
        }
    }
}

/// Many calls in flight at one server that fail at the same moment do not open the default breaker. One that counts
/// consecutive failures without time opens.
#[tokio::test(start_paused = true)]
async fn broken_connection_opens_no_breaker() {
    let cluster = Cluster::of([Does::Hang, WELL, WELL]);
    let policy = RetryPolicy::http().budget(RetryBudget::unlimited()).seed(1).boxed_errors();
    let layer = StandardLayer::http().retry(policy).total_time(secs(20)).attempt_timeout(secs(1));
    for (layer, refuses) in [
        (layer.clone().endpoints(urls(&cluster)), false),
        (layer.limits(timeless(), Bulkhead::new(64)).endpoints(urls(&cluster)), true),
    ] {
        let client = layer.layer(cluster.client(""));
        let mut calls = JoinSet::new();
        for _ in 0..90 {
            calls.spawn(client.send(request("GET")));
        }
        calls.join_all().await;
        assert!(cluster.seen().iter().filter(|name| *name == "0").count() >= 20);
        let next = client.send(request("GET")).await;
        assert_eq!(next.is_err_and(|error| error.is::<Refused>()), refuses);
    }
}

/// If all servers are down, the breaker of the service opens, and calls fail without an attempt.
#[tokio::test(start_paused = true)]
async fn breaker_opens_for_the_whole_service() {
    let cluster = Cluster::of([Does::Refuse; 3]);
    let breaker = CircuitBreaker::rate().seed(1);
    let client = stack(&breaker).endpoints(urls(&cluster)).layer(cluster.client(""));
    for _ in 0..20 {
        client.send(request("GET")).await.unwrap_err();
    }
    assert_eq!(breaker.state("0"), BreakerState::Open);
    cluster.seen();
    let error = client.send(request("GET")).await.unwrap_err();
    assert!(error.is::<Refused>(), "{error}");
    assert!(cluster.seen().is_empty());
}

/// The stack's attempt timeout counts for the endpoint and names it. The retry goes to another one.
// E-3
#[tokio::test(start_paused = true)]
async fn timeout_of_the_stack_goes_elsewhere() {
    let cluster = Cluster::of([Does::Hang, WELL]);
    let layer = StandardLayer::http().attempt_timeout(secs(1)).endpoints(urls(&cluster)).checked().unwrap();
    let handle = layer.endpoints_handle();
    let client = layer.layer(cluster.client(""));
    for _ in 0..40 {
        assert_eq!(client.send(request("GET")).await.unwrap().status(), StatusCode::OK);
    }
    let hanging = cluster.seen().iter().filter(|name| *name == "0").count();
    assert!((1..=6).contains(&hanging), "{hanging} calls to the one that hangs");
    let view = handle.view();
    assert!(view[0].failing > 0.1 && view[0].in_flight == 0, "{view:?}");

    let cluster = Cluster::of([Does::Hang]);
    let layer = StandardLayer::http().total_time(secs(3)).attempt_timeout(secs(1)).endpoints(urls(&cluster));
    let error = layer.layer(cluster.client("")).send(request("POST")).await.unwrap_err();
    assert_eq!(error.to_string(), "the attempt timed out after 1s (http://0)");
    assert_eq!(error.downcast_ref::<TimedOut>().and_then(TimedOut::endpoint), Some("http://0"));
}

/// A time limit set after the endpoints holds too.
#[tokio::test(start_paused = true)]
async fn times_may_be_set_after_the_endpoints() {
    let cluster = Cluster::of([Does::Hang, Does::Hang]);
    let layer = StandardLayer::http().endpoints(urls(&cluster)).total_time(secs(4)).attempt_timeout(secs(1));
    let began = Instant::now();
    layer.layer(cluster.client("")).send(request("POST")).await.unwrap_err();
    assert_eq!(began.elapsed(), secs(1));
}

/// Makes seven calls at once, of which three endpoints have room for six. Asserts that they take six, and refuse one.
async fn fill<C>(cluster: &Cluster, client: &C, method: &str)
where
    C: Service<Request<Body>, Response: Send, Error = BoxError, Future: Send> + Clone + Send + 'static,
{
    let mut calls = JoinSet::new();
    for _ in 0..7 {
        calls.spawn(client.clone().oneshot(request(method)));
    }
    let ended = calls.join_all().await;
    let refused: Vec<_> = ended.iter().filter_map(|call| call.as_ref().err()).collect();
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(refused[0].is::<Refused>(), "{}", refused[0]);
    let mut seen = HashMap::new();
    cluster.seen().into_iter().for_each(|name| *seen.entry(name).or_insert(0) += 1);
    assert_eq!(seen.into_values().collect::<Vec<_>>(), [2; 3]);
}

/// The limit on calls in flight is that of each endpoint. A call that finds no place goes elsewhere at once, and is
/// refused only if no endpoint has a place.
// E-18
#[tokio::test(start_paused = true)]
async fn places_are_those_of_each_endpoint() {
    let cluster = Cluster::of([Does::Answer(secs(1)); 3]);
    let layer = StandardLayer::http().limits(CircuitBreaker::rate(), Bulkhead::new(2)).endpoints(urls(&cluster));
    fill(&cluster, &layer.layer(cluster.client("")), "POST").await;
}

/// As with retries, an attempt that an endpoint's limit refuses goes to another one. Nothing is paid for it.
// D-7
#[tokio::test(start_paused = true)]
async fn hedged_attempts_leave_full_endpoints() {
    let cluster = Cluster::of([Does::Answer(secs(1)); 3]);
    let policy = HedgePolicy::http().delay(secs(5)).max_attempts(3).boxed_errors();
    let limits = StandardLayer::http().limits(CircuitBreaker::rate(), Bulkhead::new(2));
    let client = limits.hedge(policy.clone()).endpoints(urls(&cluster)).layer(cluster.client(""));
    fill(&cluster, &client, "GET").await;
    assert!(reattempt_core::Budget::is_full(policy.budget_ref()));
}

/// A hedge goes through the whole stack to an endpoint without an attempt of its call.
// E-3
#[tokio::test(start_paused = true)]
async fn standard_hedges_go_elsewhere() {
    let cluster = Cluster::of([Does::Hang; 3]);
    let policy = HedgePolicy::http().delay(ms(20)).max_attempts(3).budget(RetryBudget::unlimited()).boxed_errors();
    let layer = StandardLayer::http().hedge(policy).total_time(secs(2)).attempt_timeout(secs(1));
    let client = layer.endpoints(urls(&cluster).without_ejections()).checked().unwrap().layer(cluster.client(""));
    // A breaker opens after 20 attempts.
    for _ in 0..6 {
        client.send(request("GET")).await.unwrap_err();
        let seen = cluster.seen();
        assert_eq!((seen.len(), seen.iter().collect::<HashSet<_>>().len()), (3, 3), "{seen:?}");
    }
    cluster.set("2", WELL);
    let response = client.send(request("GET")).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    if let Some(report) = Report::of(&response) {
        assert_eq!(report.attempts().last().unwrap().endpoint.as_deref(), Some("http://2"));
    }
}

/// A client for each server stands where the one client would, below either policy.
#[tokio::test(start_paused = true)]
async fn standard_stack_is_above_balanced() {
    let cluster = Cluster::of([Does::Refuse, WELL, WELL]);
    let nodes = cluster.clone();
    let servers = Endpoints::list(cluster.names()).unwrap();
    let servers = servers.connect(move |name| GuardLayer::http(Bulkhead::new(2)).layer(nodes.client(name)));
    let balanced = servers.http();
    let stack = StandardLayer::http().guards(CircuitBreaker::rate());
    let hedged = stack.clone().hedge(HedgePolicy::http().delay(secs(1)).boxed_errors());
    let (retried, hedged) = (stack.layer(balanced.clone()), hedged.layer(balanced.clone()));
    for _ in 0..50 {
        assert_eq!(retried.send(request("POST")).await.unwrap().status(), StatusCode::OK);
        assert_eq!(hedged.send(request("GET")).await.unwrap().status(), StatusCode::OK);
    }
    assert!(balanced.endpoints().view()[0].failing > 0.0);
}

/// The endpoints classify with the policy's protocol, so there is one value for the whole stack.
#[tokio::test(start_paused = true)]
async fn endpoints_classify_as_the_policy_does() {
    let cluster = Cluster::of([Does::Status(500)]);
    let served = |http: reattempt::Http| http.on_status(StatusCode::INTERNAL_SERVER_ERROR, reattempt::Verdict::Success);
    let policy = RetryPolicy::http().protocol(served).boxed_errors();
    let layer = StandardLayer::http().retry(policy).endpoints(urls(&cluster));
    let handle = layer.endpoints_handle();
    let client = layer.layer(cluster.client(""));
    for _ in 0..10 {
        client.send(request("GET")).await.unwrap();
    }
    assert_eq!((cluster.seen().len(), handle.view()[0].failing), (10, 0.0));
}

/// Services of one layer, and the clones of the layer, share the endpoints.
#[tokio::test(start_paused = true)]
async fn services_of_a_layer_share_endpoints() {
    let cluster = Cluster::of([Does::Refuse, WELL]);
    let layer = StandardLayer::http().endpoints(urls(&cluster));
    let handle = layer.endpoints_handle();
    let clients = [layer.layer(cluster.client("")), layer.clone().layer(cluster.client(""))];
    for number in 0..40 {
        clients[number % 2].send(request("GET")).await.unwrap();
    }
    assert!(cluster.seen().iter().filter(|name| *name == "0").count() <= 5);
    handle.update_urls(["http://1"]).unwrap();
    cluster.set("1", Does::Refuse);
    for client in &clients {
        client.send(request("GET")).await.unwrap_err();
    }
}

#[test]
fn contradictions_with_endpoints_are_errors() {
    let cluster = Cluster::of([WELL]);
    let of = |timeout| StandardLayer::http().endpoints(urls(&cluster).attempt_timeout(timeout));
    assert_eq!(
        of(secs(10)).checked().unwrap_err().to_string(),
        "`Endpoints::attempt_timeout` must be below `attempt_timeout` of the stack, which ends the attempt before, but \
         it is 10s"
    );
    assert!(of(ms(9_999)).checked().is_ok());
    assert!(of(ms(9_999)).total_time(secs(19)).checked().is_err(), "the stack's is 9.5 s then");

    let many = Endpoints::urls((0..101).map(|number| format!("http://host-{number}"))).unwrap();
    let layer = StandardLayer::http().limits(CircuitBreaker::rate(), Bulkhead::new(0)).endpoints(many);
    let warnings: Vec<_> = layer.validate().iter().map(ToString::to_string).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(StandardLayer::http().endpoints(urls(&cluster)).validate().is_empty());
}

/// Over gRPC the caller gets a response whose status names the endpoint, in the inner service's own types.
#[tokio::test(start_paused = true)]
async fn grpc_stack_over_urls_answers() {
    use reattempt_grpc::Code;
    use reattempt_testing_layers::grpc::{Lost, ends_with, lost, read, trailers_only};
    let server = tower::service_fn(|request: Request<tonic::body::Body>| async move {
        match request.uri().host() {
            Some("0") => Err(lost(std::io::Error::from(std::io::ErrorKind::ConnectionRefused))),
            Some("1") => Ok(trailers_only(Code::Unavailable)),
            Some("2") => std::future::pending().await,
            _ => Ok::<_, Lost>(ends_with(Code::Ok)),
        }
    });
    let layer = |names: &[&str]| {
        let urls = Endpoints::urls(names.iter().map(|name| format!("http://{name}"))).unwrap();
        let stack = StandardLayer::grpc().retry(RetryPolicy::grpc().repeatable(true));
        stack.attempt_timeout(secs(1)).endpoints(urls.base("http://service").unwrap()).checked()
    };
    let call = || Request::post("http://service/service/method").body(tonic::body::Body::empty()).unwrap();
    let client = layer(&["0", "1", "3"]).unwrap().layer(server);
    for _ in 0..20 {
        assert_eq!(read(client.send(call()).await.unwrap()).await.0, Some(Code::Ok));
    }
    let client = layer(&["2"]).unwrap().layer(server);
    let response = client.send(call()).await.unwrap();
    let message = response.headers()["grpc-message"].to_str().unwrap();
    assert_eq!(message, "the attempt timed out after 1s (http://2)");
    assert_eq!(read(response).await.0, Some(Code::DeadlineExceeded));
}

#[test]
fn standard_clients_over_servers_have_types() {
    fn service<R, S: tower::Service<R>>() {}
    let cluster = Cluster::of([WELL]);
    let _: StandardDirectedClient<Node> = StandardLayer::http().endpoints(urls(&cluster)).layer(cluster.client(""));
    let _: StandardClient<reattempt::endpoints::Balanced<Node>> = StandardLayer::http().layer(cluster.balanced());
    service::<Request<Body>, StandardDirectedClient<Node>>();
    service::<reqwest::Request, StandardDirectedClient<reqwest::Client>>();
    let client = StandardLayer::http().endpoints(urls(&cluster)).layer(reqwest::Client::new());
    let _: StandardDirectedClient<reqwest::Client> = client;
}
