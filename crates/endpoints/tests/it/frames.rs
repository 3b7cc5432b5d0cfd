//! Tests of the frames of layers: picks outside a frame, nested frames, and panics.

use std::collections::HashSet;
use std::convert::Infallible;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::{Request, Response};
use reattempt::budget::Unlimited;
use reattempt::endpoints::{Endpoints, EndpointsLayer};
use reattempt::{Http, ReplayBody, RetryLayer};
use reattempt_testing::secs;
use reattempt_testing_layers::cluster::{Body, Cluster, Does, WELL, get, policy};
use tokio::time::sleep;
use tower::util::BoxCloneSyncService;
use tower::{BoxError, Layer, Service, service_fn};

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

/// A reason why the retry layer does not see where its attempts go.
#[derive(Debug, Clone, Copy)]
enum Hides {
    /// A task sends each attempt.
    Task,
    /// A token service with endpoints of its own is asked before each attempt, in the same frame.
    Token,
    /// A token service is awaited before each attempt is sent.
    AwaitedToken,
    /// Every other attempt goes to another set, with one tier or two.
    SecondSet { tiers: usize },
}

type Boxed = BoxCloneSyncService<Request<ReplayBody<Body>>, Response<Body>, BoxError>;

/// Returns a client of a set with the tiers `0..3` and `3..6`, behind a layer that hides where its attempts go.
fn hidden(hides: Hides, cluster: &Cluster) -> Boxed {
    let set = |tiers: &[Range<u32>]| {
        let urls = |tier: &Range<u32>| tier.clone().map(|server| format!("http://{server}"));
        let first = Endpoints::urls(urls(&tiers[0])).unwrap().base("http://0").unwrap();
        let endpoints = tiers[1..].iter().fold(first, |set, tier| set.or_else_urls(urls(tier)).unwrap());
        let set = EndpointsLayer::with(Http::new(), endpoints).layer(cluster.client(""));
        Boxed::new(service_fn(move |request| {
            let sent = set.clone().call(request);
            async { Ok(sent.await?.map(|_| Body::default())) }
        }))
    };
    let first = set(&[0..3, 3..6]);
    let second = match hides {
        Hides::SecondSet { tiers: 2 } => set(&[3..5, 5..6]),
        _ => set(std::slice::from_ref(&(3..6))),
    };
    let token = Cluster::of([WELL; 2]).balanced();
    let count = Arc::new(AtomicUsize::new(0));
    Boxed::new(service_fn(move |request| {
        let (mut first, mut second, mut token) = (first.clone(), second.clone(), token.clone());
        let sent: Pin<Box<dyn Future<Output = Result<_, BoxError>> + Send>> = match hides {
            Hides::Task => Box::pin(async move { tokio::spawn(async move { first.call(request).await }).await? }),
            Hides::Token => {
                let (asked, sent) = (token.call(get()), first.call(request));
                Box::pin(async {
                    asked.await?;
                    sent.await
                })
            }
            Hides::AwaitedToken => Box::pin(async move {
                token.call(get()).await?;
                first.call(request).await
            }),
            Hides::SecondSet { .. } if count.fetch_add(1, Ordering::Relaxed).is_multiple_of(2) => {
                Box::pin(first.call(request))
            }
            Hides::SecondSet { .. } => Box::pin(second.call(request)),
        };
        sent
    }))
}

/// Where the tier of an attempt is hidden from the retry layer, a key permits nothing that it would not permit
/// otherwise: no POST reaches both tiers.
// E-2, trap 71
#[tokio::test(start_paused = true)]
async fn hidden_tier_permits_nothing() {
    let sets = [1, 2].map(|tiers| Hides::SecondSet { tiers });
    for hides in [Hides::Task, Hides::Token, Hides::AwaitedToken].into_iter().chain(sets) {
        for failing in [Does::Status(503), Does::Reset] {
            let cluster = Cluster::of([failing, failing, failing, WELL, WELL, WELL]);
            let client = RetryLayer::new(policy(4).boxed_errors()).layer(hidden(hides, &cluster));
            let mut spilled = 0;
            for number in 0..60 {
                let post = Request::post("http://0/").header("idempotency-key", format!("\"{number}\""));
                let post = post.body(Body::from("charge")).unwrap();
                let _ = client.send(post).await;
                let seen: Vec<u32> = cluster.seen().iter().map(|name| name.parse().unwrap()).collect();
                let first = seen.iter().filter(|server| **server < 3).count();
                assert!(first == 0 || first == seen.len(), "{hides:?}, {failing:?}: {seen:?}");
                spilled += usize::from(first == 0);
                sleep(secs(1)).await;
            }
            assert!(spilled > 0, "{hides:?}, {failing:?}: the second tier was never used");
        }
    }
}
