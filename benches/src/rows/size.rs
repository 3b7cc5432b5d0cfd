//! The size of the future around an inner one that is ready, and whether it is in a box.

use http::Request;
use reattempt::CallOptions;
use tower::Layer;
use tower_service::Service;

use crate::Allocations;
use crate::contenders::{by_hand, by_hand_once, ours, resilience};
use crate::inner::Answers;
use crate::requests::{Body, fresh};

/// For each contender, the bytes of its future, and the bytes of the box it is in: those that `call`
/// puts on the heap when there is nothing to keep of the request, for it will not be retried.
pub fn sizes() -> Vec<(&'static str, usize, u64)> {
    let never = CallOptions::new().never_retry();
    vec![
        measure("bare", Answers, Answers),
        measure("ours", ours(Answers), ours(Answers).with_options(never)),
        measure("tower", by_hand(Answers), by_hand_once(Answers)),
        measure("tower-resilience", resilience().layer(Answers), resilience().layer(Answers)),
    ]
}

fn measure<S>(name: &'static str, mut usual: S, mut never: S) -> (&'static str, usize, u64)
where
    S: Service<Request<Body>>,
{
    let future = usual.call(fresh());
    let request = fresh();
    let before = Allocations::now().bytes;
    let not_retried = never.call(request);
    let boxed = Allocations::now().bytes - before;
    drop(not_retried);
    (name, size_of_val(&future), boxed)
}
