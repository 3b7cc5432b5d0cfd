//! Tests of requests that are rewritten to an endpoint's base URL.

use std::collections::HashSet;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use http::{Request, Response};
use reattempt::endpoints::{Endpoints, EndpointsLayer};
use reattempt::guard::{GuardLayer, Limit, RateLimit};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::{Deadline, Http, RetryLayer};
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Body, Cluster, Does, WELL, get, policy};
use tokio::time::sleep;
use tower::{Layer, Service, service_fn};

/// Returns the URL and the host with which a request arrives at the only endpoint.
async fn arrives(layer: &EndpointsLayer, request: Request<Body>) -> (String, Option<String>) {
    let seen = Arc::new(Mutex::new(None));
    let noted = Arc::clone(&seen);
    let client = layer.layer(service_fn(move |request: Request<Body>| {
        let host = request.headers().get("host").map(|host| host.to_str().unwrap().to_owned());
        *noted.lock().unwrap() = Some((request.uri().to_string(), host));
        async { Ok::<_, Infallible>(Response::new(Body::default())) }
    }));
    client.send(request).await.unwrap();
    seen.lock().unwrap().take().unwrap()
}

#[tokio::test]
async fn base_of_requests_is_replaced() {
    let layer =
        |base: &str, to: &str| EndpointsLayer::with(Http::new(), Endpoints::urls([to]).unwrap().base(base).unwrap());
    for (base, to, request, expected) in [
        ("http://orders", "https://eu.example", "http://orders/a?b=c", "https://eu.example/a?b=c"),
        ("http://orders", "http://eu:81/api", "http://orders/a?b", "http://eu:81/api/a?b"),
        ("http://orders", "http://eu/api/", "http://orders", "http://eu/api/"),
        ("http://orders/v1", "http://eu/api", "http://orders/v1/a", "http://eu/api/a"),
        ("http://orders/v1", "http://eu", "http://orders/v1?a", "http://eu/?a"),
        ("http://orders/v1", "http://eu/v1", "http://orders/v1/a", "http://eu/v1/a"),
        ("http://orders", "http://eu/api", "http://ORDERS:80/a%2Fb//c", "http://eu/api/a%2Fb//c"),
        ("http://orders", "http://[::1]:8080", "/a?b", "http://[::1]:8080/a?b"),
        ("http://orders/v1", "http://eu/api", "/v1/a", "http://eu/api/v1/a"),
        // These are not for the endpoints.
        ("http://orders", "http://eu", "http://other/a", "http://other/a"),
        ("http://orders", "http://eu", "https://orders/a", "https://orders/a"),
        ("http://orders", "http://eu", "http://orders:81/a", "http://orders:81/a"),
        ("http://orders/v1", "http://eu", "http://orders/v10/a", "http://orders/v10/a"),
        ("http://orders/v1", "http://eu", "http://orders/a", "http://orders/a"),
        ("http://orders", "http://eu", "*", "*"),
    ] {
        let request = Request::get(request).body(Body::default()).unwrap();
        assert_eq!(arrives(&layer(base, to), request).await.0, expected);
    }
}

/// A base of https over servers of http would send its requests in clear text.
#[test]
fn https_base_over_http_is_refused() {
    let error = Endpoints::urls(["http://eu"]).unwrap().base("https://orders").map(drop).unwrap_err();
    let expected = "endpoint `https://orders` is for https, but the servers are not (https for all, or http)";
    assert_eq!(error.to_string(), expected);
}

/// Requests with an https base are not sent in clear text after an update either.
#[test]
fn update_to_clear_text_is_refused() {
    let layer = EndpointsLayer::http(["https://eu/api"]).unwrap();
    let error = layer.endpoints().update_urls(["http://eu"]).unwrap_err();
    let expected = "endpoint `http://eu` is for http, but requests have an https base URL (https for all)";
    assert_eq!(error.to_string(), expected);
    assert_eq!(layer.endpoints().view()[0].name.as_ref(), "https://eu/api");
    let layer = EndpointsLayer::http(["http://eu"]).unwrap();
    layer.endpoints().update_urls(["https://us"]).unwrap();
    layer.endpoints().update_urls(["http://eu"]).unwrap();
}

#[tokio::test]
async fn explicit_host_stays() {
    let layer = EndpointsLayer::http(["http://eu"]).unwrap();
    let mut request = get();
    *request.uri_mut() = "http://eu/".parse().unwrap();
    request.headers_mut().insert("host", "tenant.example".parse().unwrap());
    assert_eq!(arrives(&layer, request).await.1.unwrap(), "tenant.example");
}

/// A request for another server neither counts as an attempt at an endpoint nor is judged.
#[tokio::test(start_paused = true)]
async fn foreign_request_is_no_pick() {
    let cluster = Cluster::of([WELL]);
    cluster.set("other", Does::Refuse);
    let layer = EndpointsLayer::http(["http://0"]).unwrap();
    let client = layer.layer(cluster.client(""));
    for _ in 0..20 {
        let request = Request::get("http://other/").body(Body::default()).unwrap();
        client.send(request).await.unwrap_err();
    }
    assert_eq!(layer.endpoints().view()[0].failing, 0.0);
}

/// The later tier is used while the first has no untried endpoint in service.
// E-1
#[tokio::test(start_paused = true)]
async fn later_tier_takes_over() {
    let cluster = Cluster::of([Does::Refuse, Does::Refuse, WELL]);
    let endpoints = Endpoints::urls(["http://0", "http://1"]).unwrap();
    let endpoints = endpoints.or_else_urls(["http://2"]).unwrap();
    let layer = EndpointsLayer::with(Http::new(), endpoints);
    let client = RetryLayer::new(policy(3)).layer(layer.layer(cluster.client("")));
    let request = || Request::get("http://0/").body(Body::default()).unwrap();
    for _ in 0..10 {
        client.send(request()).await.unwrap();
    }
    let seen = cluster.seen();
    assert_eq!(&seen[2], "2", "both of the first tier before it: {seen:?}");
    assert!(seen.len() < 30, "the first tier is out of service: {seen:?}");
    cluster.set("0", WELL);
    cluster.set("1", WELL);
    tokio::time::sleep(std::time::Duration::from_secs(40)).await;
    for _ in 0..10 {
        client.send(request()).await.unwrap();
    }
    assert!(!cluster.seen().contains(&"2".to_owned()), "the first tier is back");
}

/// A later tier does not know the key of a request that the first may have processed. With proof, the request may go
/// there.
// E-2
#[tokio::test(start_paused = true)]
async fn keyed_post_stays_in_its_tier() {
    for (does, tiered, expected) in
        [(Does::Reset, true, 1), (Does::Reset, false, 2), (Does::Refuse, true, 2), (Does::Status(503), true, 1)]
    {
        let cluster = Cluster::of([does, WELL]);
        let endpoints = if tiered {
            Endpoints::urls(["http://0"]).unwrap().or_else_urls(["http://1"]).unwrap()
        } else {
            Endpoints::urls(["http://0", "http://1"]).unwrap()
        };
        let layer = EndpointsLayer::with(Http::new(), endpoints);
        let client = RetryLayer::new(policy(3)).layer(layer.layer(cluster.client("")));
        let post = || {
            let post = Request::post("http://0/").header("idempotency-key", "\"k\"");
            post.body(Body::from("charge")).unwrap()
        };
        // Until the failing server is picked first.
        let seen = loop {
            let _outcome = client.send(post()).await;
            let seen = cluster.seen();
            if seen[0] == "0" {
                break seen;
            }
        };
        assert_eq!(seen.len(), expected, "{does:?}, tiers: {tiered}: {seen:?}");
    }
}

/// A key is good for the tier that may have it, until that tier has no untried server in service. So the first tier's
/// well server answers each POST that its others have failed, and no POST reaches both tiers.
// E-2, T-1, field 32, trap 71
#[tokio::test(start_paused = true)]
async fn keyed_post_is_retried_in_its_tier() {
    for (hedged, failing) in
        [(false, Does::Status(503)), (false, Does::Reset), (true, Does::Status(503)), (true, Does::Reset)]
    {
        let cluster = Cluster::of([failing, failing, WELL, WELL, WELL, WELL]);
        let [first, second] = [0..3, 3..6].map(|tier| tier.map(|server| format!("http://{server}")));
        let endpoints = Endpoints::urls(first).unwrap().or_else_urls(second).unwrap();
        let layer = EndpointsLayer::with(Http::new(), endpoints);
        let set = layer.layer(cluster.client(""));
        let retries = RetryLayer::new(policy(3));
        let hedges = HedgeLayer::new(HedgePolicy::http().delay(secs(9)).boxed_errors());
        let mut retried = 0;
        for number in 0..60 {
            let post = Request::post("http://0/").header("idempotency-key", format!("\"{number}\""));
            let post = post.extension(Deadline::after(secs(60))).body(Body::from("charge")).unwrap();
            let answer = match hedged {
                true => retries.layer(hedges.layer(set.clone())).send(post).await,
                false => retries.layer(set.clone()).send(post).await,
            };
            assert_eq!(answer.unwrap().status(), 200, "{failing:?}, hedged: {hedged}");
            let seen: Vec<u32> = cluster.seen().iter().map(|name| name.parse().unwrap()).collect();
            assert!(
                seen.iter().all(|server| (*server < 3) == (seen[0] < 3)),
                "{failing:?}, hedged: {hedged}: {seen:?}"
            );
            retried += usize::from(seen.len() > 1);
        }
        assert!(retried >= 4, "{failing:?}, hedged: {hedged}: {retried}");
    }
}

/// A hedge layer between the retry layer and the set does not hide the tier of an attempt. That attempt ejects the
/// first tier, so a retry with the same key would go to the other tier.
// E-2
#[tokio::test(start_paused = true)]
async fn keyed_post_stays_in_tier_below_hedges() {
    let post = || {
        let post = Request::post("http://0/").header("idempotency-key", "\"k\"");
        post.extension(Deadline::after(secs(60))).body(Body::from("charge")).unwrap()
    };
    for hedged in [false, true] {
        let cluster = Cluster::of([Does::Reset, WELL]);
        let endpoints = Endpoints::urls(["http://0"]).unwrap().or_else_urls(["http://1"]).unwrap();
        let layer = EndpointsLayer::with(Http::new(), endpoints);
        let set = layer.layer(cluster.client(""));
        let get = || Request::get("http://0/").body(Body::default()).unwrap();
        // Each counts twice, so the third ejects.
        for _ in 0..2 {
            set.send(get()).await.unwrap_err();
            sleep(secs(1)).await;
        }
        let retries = RetryLayer::new(policy(3));
        let hedges = HedgeLayer::new(HedgePolicy::http().delay(secs(9)).boxed_errors());
        let failed = match hedged {
            true => retries.layer(hedges.layer(set)).send(post()).await.is_err(),
            false => retries.layer(set).send(post()).await.is_err(),
        };
        assert!(failed, "hedged: {hedged}");
        assert_eq!(cluster.seen(), ["0"; 3], "hedged: {hedged}");
        assert!(layer.endpoints().view()[0].out.is_some(), "hedged: {hedged}");
    }
}

/// A layer that awaits something before it calls its inner service.
#[derive(Clone)]
struct Awaiting<S>(S);

impl<S: Service<R> + Clone + Send + 'static, R: Send + 'static> Service<R> for Awaiting<S>
where
    S::Future: Send,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.0.poll_ready(cx)
    }

    fn call(&mut self, request: R) -> Self::Future {
        let inner = self.0.clone();
        let mut inner = std::mem::replace(&mut self.0, inner);
        Box::pin(async move {
            sleep(secs(1)).await;
            inner.call(request).await
        })
    }
}

/// A layer that calls its inner service only when it is polled hides neither the tier of an attempt nor the endpoints
/// that the call has tried, in the first attempt and in retries.
// D-17, E-2
#[tokio::test(start_paused = true)]
async fn awaiting_layer_hides_no_endpoint() {
    let request = |method: &str| {
        let request = Request::builder().method(method).uri("http://0/").header("idempotency-key", "\"k\"");
        request.body(Body::from("charge")).unwrap()
    };
    // The third lost connection ejects the first tier.
    for (failures, waits) in [(2, false), (1, false), (2, true)] {
        let cluster = Cluster::of([Does::Reset, WELL]);
        let endpoints = Endpoints::urls(["http://0"]).unwrap().or_else_urls(["http://1"]).unwrap();
        let set = EndpointsLayer::with(Http::new(), endpoints).layer(cluster.client(""));
        for _ in 0..failures - usize::from(waits) {
            set.send(request("GET")).await.unwrap_err();
            sleep(secs(1)).await;
        }
        let retries = RetryLayer::new(policy(3));
        if waits {
            // A guard that waits sends the attempt from a poll, too.
            let guard = GuardLayer::http(RateLimit::new(Limit::every(secs(5)), 1));
            guard.layer(set.clone()).send(request("GET")).await.unwrap_err();
            retries.layer(guard.layer(Awaiting(set))).send(request("POST")).await.unwrap_err();
        } else {
            retries.layer(Awaiting(set)).send(request("POST")).await.unwrap_err();
        }
        assert_eq!(cluster.seen(), vec!["0"; failures + 1]);
    }
    for _ in 0..20 {
        let cluster = Cluster::of([Does::Reset, Does::Reset, Does::Reset, WELL]);
        let set = EndpointsLayer::http(["http://0", "http://1", "http://2", "http://3"]).unwrap();
        let client = RetryLayer::new(policy(4)).layer(Awaiting(set.layer(cluster.client(""))));
        client.send(request("GET")).await.unwrap();
        let seen = cluster.seen();
        assert_eq!(seen.iter().collect::<HashSet<_>>().len(), seen.len(), "{seen:?}");
    }
}

/// A URL that would be too long with the prefix of its endpoint is an error that names the endpoint. The request is not
/// sent anywhere, and the endpoint is not blamed.
#[tokio::test(start_paused = true)]
async fn url_without_room_is_an_error() {
    use reattempt::endpoints::EndpointsError;
    let cluster = Cluster::of([WELL]);
    let endpoints =
        Endpoints::urls(["http://0/a-prefix-that-is-longer-than-the-base"]).unwrap().base("http://orders").unwrap();
    let layer = EndpointsLayer::with(Http::new(), endpoints);
    let client = RetryLayer::new(policy(3)).layer(layer.layer(cluster.client("")));
    let request = |length: usize| {
        let uri = format!("http://orders/{}", "x".repeat(length));
        Request::get(uri).body(Body::default()).unwrap()
    };
    client.send(request(65_000)).await.unwrap();
    assert_eq!(cluster.seen(), ["0"]);
    let error = client.send(request(65_515)).await.unwrap_err();
    assert!(error.is::<EndpointsError>(), "{error}");
    assert_eq!(
        error.to_string(),
        "endpoint `http://0/a-prefix-that-is-longer-than-the-base` has no room for the path of the request (65,534 bytes with its prefix)"
    );
    assert!(cluster.seen().is_empty());
    let view = &layer.endpoints().view()[0];
    assert_eq!((view.failing, view.in_flight), (0.0, 0));
}
