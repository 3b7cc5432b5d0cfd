//! Allocations of first-time successes over several endpoints: none above the client.

use reattempt::endpoints::{Endpoints, EndpointsLayer};
use reattempt::standard::StandardLayer;
use reattempt::{Http, RetryLayer, RetryPolicy};
use tower::Layer;

use super::guard::{MAY_CLONE, Server, allocations_of_call};

// E-15
#[test]
fn call_to_an_endpoint_allocates_nothing() {
    MAY_CLONE.set(true);
    let balanced = Endpoints::list(0..5).unwrap().connect(|_| Server).http();
    assert_eq!(allocations_of_call(balanced.clone()), 0);
    let policy = RetryPolicy::http().seed(1).boxed_errors();
    assert_eq!(allocations_of_call(RetryLayer::new(policy).layer(balanced)), 0);
    let urls = Endpoints::urls(["http://eu.example/v1", "http://us.example/v1"]).unwrap();
    let urls = urls.base("http://one.example").unwrap();
    let prefixed = EndpointsLayer::with(Http::new(), urls);
    assert_eq!(allocations_of_call(prefixed.layer(Server)), 1, "the new path");
    MAY_CLONE.set(false);
    let urls = ["http://one.example", "http://eu.example", "http://us.example"];
    let directed = EndpointsLayer::http(urls).unwrap().layer(Server);
    assert_eq!(allocations_of_call(directed), 0);
    MAY_CLONE.set(true);
    let policy = RetryPolicy::http().seed(1).boxed_errors();
    // The first call to each endpoint may allocate its limit.
    let one = Endpoints::urls(["http://one.example"]).unwrap();
    let stack = StandardLayer::http().retry(policy).endpoints(one).layer(Server);
    MAY_CLONE.set(false);
    assert_eq!(allocations_of_call(stack), 0);
}
