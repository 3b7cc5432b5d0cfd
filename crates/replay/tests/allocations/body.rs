//! Allocations of the replayable body when a call succeeds first time.

use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::{Empty, Full};
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory, UploadBody};
use reattempt_testing::{allocations_of, bytes_in_use};

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
fn one_frame_costs_one_allocation_if_shared() {
    let limits = ReplayLimits::default();
    let data = Bytes::from_static(b"hello");
    assert_eq!(allocations_of(|| send(Full::new(data.clone()), &limits)), 1);
    assert_eq!(allocations_of(|| send(Empty::new(), &limits)), 0);
    let unread = |limits: &ReplayLimits| {
        let first = ReplayBody::new(Full::new(data.clone()), limits);
        drop((first.try_clone(), first));
    };
    assert_eq!(allocations_of(|| unread(&limits)), 1);
    assert_eq!(allocations_of(|| unread(&limits.clone().per_call(1))), 1, "it is in memory, whatever the cap");
    assert_eq!(allocations_of(|| send(Full::new(data.clone()), &limits.clone().per_call(0))), 0);
    assert_eq!(allocations_of(|| read(pin!(ReplayBody::passthrough(Full::new(data.clone()))))), 0);
}

/// Compared with the upload alone, which opens itself.
#[test]
fn upload_costs_one_allocation_more() {
    let upload = UploadBody::cloned(Full::<Bytes>::from("hello"));
    let limits = ReplayLimits::default();
    let alone = allocations_of(|| read(pin!(upload.clone())));
    assert_eq!(allocations_of(|| send(upload.clone(), &limits)), alone + 1);
}

/// Hosts that were used once leave no entry behind.
// trap 40
#[test]
fn shares_of_idle_destinations_are_removed() {
    let limits = ReplayLimits::default().memory(ReplayMemory::new(400)).by_destination();
    let _begun = limits.charge(100).unwrap();
    let before = bytes_in_use();
    for number in 0..10_000 {
        let limits = limits.for_call(&SizeHint::with_exact(1), || format!("{number}.example").into());
        assert!(limits.charge(1).is_some());
    }
    let held = bytes_in_use() - before;
    assert!(held < 8 * 1024, "{held} bytes");
}

/// A body that returns one byte again and again.
struct Endless;

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
    }
}

/// The entries of frames that every reader has returned are freed.
// trap 33
#[test]
fn places_of_passed_frames_are_freed() {
    let limits = ReplayLimits::default().memory(ReplayMemory::new(usize::MAX));
    let before = bytes_in_use();
    let mut ahead = Box::pin(ReplayBody::in_memory(Endless, &limits));
    let mut behind = Box::pin(ahead.try_clone().unwrap());
    let next = |reader: &mut Pin<Box<ReplayBody<Endless>>>| {
        let polled = reader.as_mut().poll_frame(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(polled, Poll::Ready(Some(Ok(_)))));
    };
    for lead in [1, 10_000] {
        (0..lead).for_each(|_| next(&mut ahead));
        for _ in 0..10_000 {
            next(&mut ahead);
            next(&mut behind);
        }
        (0..lead).for_each(|_| next(&mut behind));
        for _ in 0..100 {
            next(&mut ahead);
            next(&mut behind);
        }
        let held = bytes_in_use() - before;
        assert!(held < 16 * 1024, "{held} bytes after a lead of {lead}");
    }
}
