//! The size of the future around an inner one that is ready, and whether it is in a box.

use http::Request;
use reattempt::CallOptions;
use tower::Layer;
use tower_service::Service;

use super::operation;
use crate::Allocations;
use crate::contenders::{by_hand_once, by_hand_with_bucket, ours, resilience};
use crate::inner::Answers;
use crate::requests::{Body, fresh};

/// The bytes of the future of one contender, and those that `call` puts on the heap for it when nothing
/// of the request is kept.
#[derive(Debug, Clone, Copy)]
pub struct Sized {
    /// The row.
    pub row: &'static str,
    /// The contender.
    pub contender: &'static str,
    /// Bytes of the future itself.
    pub future: usize,
    /// Bytes of the box it is in.
    pub boxed: u64,
}

/// The sizes of all futures that are compared.
pub fn sizes() -> Vec<Sized> {
    let never = CallOptions::new().never_retry();
    let mut sizes = vec![
        measure("bare", Answers, Answers),
        measure("ours", ours(Answers), ours(Answers).with_options(never)),
        measure("tower", by_hand_with_bucket(Answers), by_hand_once(Answers)),
        measure("tower-resilience", resilience().layer(Answers), resilience().layer(Answers)),
    ];
    let operations = operation::sizes().into_iter();
    sizes.extend(operations.map(|(contender, future)| Sized {
        row: "retry-size",
        contender,
        future,
        boxed: 0,
    }));
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
