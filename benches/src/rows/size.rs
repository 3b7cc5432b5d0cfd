//! The size of the future around an inner one that is ready, and of its box.

use http::Request;
use reattempt::CallOptions;
use tower::Layer;
use tower_service::Service;

use super::operation;
use crate::Allocations;
use crate::contenders::{by_hand_once, by_hand_with_bucket, ours, resilience};
use crate::inner::Answers;
use crate::requests::{Body, fresh};

/// The size of one contender's future, and of its allocation when nothing of the request is kept.
#[derive(Debug, Clone, Copy)]
pub struct Sized {
    /// The name of the row.
    pub row: &'static str,
    /// The name of the contender.
    pub contender: &'static str,
    /// The bytes of the future itself.
    pub future: usize,
    /// The bytes of the box it is in.
    pub boxed: u64,
}

/// Returns the sizes of all compared futures.
pub fn sizes() -> Vec<Sized> {
    let never = CallOptions::new().never_retry();
    let mut sizes = vec![
        measure("bare", Answers, Answers),
        measure("ours", ours(Answers), ours(Answers).with_options(never)),
        measure("tower", by_hand_with_bucket(Answers), by_hand_once(Answers)),
        measure("tower-resilience", resilience().layer(Answers), resilience().layer(Answers)),
    ];
    let operations = operation::sizes().into_iter();
    sizes.extend(operations.map(|(contender, future)| Sized { row: "retry-size", contender, future, boxed: 0 }));
    sizes
}

fn measure<S>(contender: &'static str, mut usual: S, mut never: S) -> Sized
where
    S: Service<Request<Body>>,
{
    let future = usual.call(fresh());
    let request = fresh();
    let before = Allocations::now().bytes;
    let not_retried = never.call(request);
    let boxed = Allocations::now().bytes - before;
    drop(not_retried);
    Sized { row: "size", contender, future: size_of_val(&future), boxed }
}
