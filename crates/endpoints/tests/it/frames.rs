//! Tests of the frames of layers: picks outside a frame, nested frames, and panics.

use std::collections::HashSet;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::{Request, Response};
use reattempt::RetryLayer;
use reattempt::budget::Unlimited;
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Body, Cluster, Does, WELL, get, policy};
use tower::{Layer, Service, service_fn};

/// A call without a retry layer leaves nothing behind for the next call on the thread: that call's client has no
/// endpoints, so its retry waits.
// E-13
#[tokio::test(start_paused = true)]
async fn pick_outside_of_frames_leaves_nothing() {
    let (alone, plain) = (Cluster::of([Does::Refuse; 2]), Cluster::of([Does::Refuse]));
    alone.balanced().send(get()).await.unwrap_err();
    let client = RetryLayer::new(policy(2)).layer(plain.client("0"));
    client.send(get()).await.unwrap_err();
    let times = plain.times();
    assert_eq!(times[1].1 - times[0].1, secs(1));
}

/// An inner call with its own retries neither sees nor changes what the outer one has tried.
// E-13
#[tokio::test(start_paused = true)]
async fn frames_nest() {
    // A 408 does not change the price, so the trail alone decides.
    let (inner, outer) = (Cluster::of([WELL; 2]), Cluster::of([Does::Status(408); 3]));
    let token = RetryLayer::new(policy(2)).layer(inner.balanced());
    let balanced = outer.balanced();
    let with_token = service_fn(move |request: Request<_>| {
        let (mut token, mut balanced) = (token.clone(), balanced.clone());
        // Both are sent within the outer frame.
        let token = token.call(get());
        let call = balanced.call(request);
        async move {
            token.await?;
            call.await
        }
    });
    let client = RetryLayer::new(policy(3).budget(Unlimited)).layer(with_token);
    for _ in 0..10 {
        client.send(get()).await.unwrap();
        assert_eq!(outer.seen().into_iter().collect::<HashSet<_>>().len(), 3);
    }
}

/// A service that panics while it is called leaves the thread's state unchanged.
// E-13
#[tokio::test(start_paused = true)]
async fn panic_restores_the_outer_frame() {
    let panics = service_fn(|_: Request<reattempt::ReplayBody<Body>>| {
        if true {
            panic!("as it should");
        }
        async { Ok::<_, Infallible>(Response::new(Body::default())) }
    });
    let outer = Cluster::of([Does::Status(408); 3]);
    let (balanced, inner) = (outer.balanced(), RetryLayer::new(policy(2)).layer(panics));
    let through = service_fn(move |request: Request<_>| {
        let (mut inner, mut balanced) = (inner.clone(), balanced.clone());
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(inner.call(get()))));
        assert!(panicked.is_err());
        balanced.call(request)
    });
    let client = RetryLayer::new(policy(3).budget(Unlimited)).layer(through);
    for _ in 0..10 {
        client.send(get()).await.unwrap();
        assert_eq!(outer.seen().into_iter().collect::<HashSet<_>>().len(), 3);
    }
}
