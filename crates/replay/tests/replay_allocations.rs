//! What the replayable body allocates on the path of a call that succeeds first time.

#![allow(missing_docs, reason = "tests")]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::Body;
use http_body_util::{Empty, Full};
use reattempt_replay::{ReplayBody, ReplayLimits};

thread_local! {
    static COUNT: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[allow(unsafe_code, reason = "an allocator that counts can be written no other way")]
// SAFETY: everything is left to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.set(COUNT.get() + 1);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The allocations made by `work`.
fn count(work: impl FnOnce()) -> usize {
    let before = COUNT.get();
    work();
    COUNT.get() - before
}

fn read<B: Body<Data = Bytes> + ?Sized>(mut body: Pin<&mut B>) {
    let mut context = Context::from_waker(Waker::noop());
    while let Poll::Ready(Some(_)) = body.as_mut().poll_frame(&mut context) {}
}

/// Sends a body while a clone of it is kept.
fn send<B>(body: B, limits: &ReplayLimits)
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let first = ReplayBody::new(body, limits);
    let kept = first.try_clone();
    {
        let first = pin!(first);
        read(first);
    }
    drop(kept);
}

#[test]
fn one_allocation_for_a_body_of_one_frame_and_none_where_nothing_is_shared() {
    let limits = ReplayLimits::default();
    let data = Bytes::from_static(b"hello");
    assert_eq!(count(|| send(Full::new(data.clone()), &limits)), 1);
    assert_eq!(count(|| send(Empty::new(), &limits)), 0);
    let unread = |limits: &ReplayLimits| {
        let first = ReplayBody::new(Full::new(data.clone()), limits);
        drop((first.try_clone(), first));
    };
    assert_eq!(count(|| unread(&limits)), 1);
    assert_eq!(
        count(|| unread(&limits.clone().per_call(1))),
        1,
        "it is in memory, whatever the cap"
    );
    assert_eq!(count(|| send(Full::new(data.clone()), &limits.clone().per_call(0))), 0);
    assert_eq!(count(|| read(pin!(ReplayBody::passthrough(Full::new(data.clone()))))), 0);
}
