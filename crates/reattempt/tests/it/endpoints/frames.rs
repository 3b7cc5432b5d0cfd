//! Frames of layers: picks outside of any, nested ones, and panics.

use std::collections::HashSet;
use std::convert::Infallible;
use std::panic::{AssertUnwindSafe, catch_unwind};

use http::{Request, Response};
use reattempt::RetryLayer;
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

use super::support::{Body, Cluster, Does, WELL, get, policy};

/// A call without a retry layer leaves nothing for the next call on the thread.
// E-13
#[tokio::test(start_paused = true)]
async fn pick_outside_of_frames_leaves_nothing() {
    let (alone, retried) = (Cluster::of([Does::Refuse; 2]), Cluster::of([Does::Refuse; 2]));
    let (balanced, outside) = (retried.balanced(), alone.balanced());
    // Its inner service uses another set first, by a handle without retries.
    let mixed = service_fn(move |request: Request<_>| {
        let (mut outside, mut balanced) = (outside.clone(), balanced.clone());
        let _never_sent = outside.call(get());
        balanced.call(request)
    });
    let client = RetryLayer::new(policy(2)).layer(mixed);
    client.send(get()).await.unwrap_err();
    let seen: HashSet<_> = retried.seen().into_iter().collect();
    assert_eq!(seen.len(), 2);
}

/// An inner call with retries of its own neither sees nor changes what the outer one has tried.
// E-13
#[tokio::test(start_paused = true)]
async fn frames_nest() {
    let (inner, outer) = (Cluster::of([WELL; 2]), Cluster::of([Does::Refuse; 3]));
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
    let client = RetryLayer::new(policy(3)).layer(with_token);
    client.send(get()).await.unwrap_err();
    let seen: HashSet<_> = outer.seen().into_iter().collect();
    assert_eq!(seen.len(), 3);
}

/// A service that panics while it is called leaves the thread as it was.
// E-13
#[tokio::test(start_paused = true)]
async fn panic_restores_the_outer_frame() {
    let panics = service_fn(|_: Request<reattempt::ReplayBody<Body>>| {
        if true {
            panic!("as it should");
        }
        async { Ok::<_, Infallible>(Response::new(Body::default())) }
    });
    let outer = Cluster::of([Does::Refuse; 3]);
    let (balanced, inner) = (outer.balanced(), RetryLayer::new(policy(2)).layer(panics));
    let through = service_fn(move |request: Request<_>| {
        let (mut inner, mut balanced) = (inner.clone(), balanced.clone());
        let panicked = catch_unwind(AssertUnwindSafe(|| drop(inner.call(get()))));
        assert!(panicked.is_err());
        balanced.call(request)
    });
    let client = RetryLayer::new(policy(3)).layer(through);
    client.send(get()).await.unwrap_err();
    assert_eq!(outer.seen().into_iter().collect::<HashSet<_>>().len(), 3);
    let _: Result<(), BoxError> = client.clone().ready().await.map(drop);
}
