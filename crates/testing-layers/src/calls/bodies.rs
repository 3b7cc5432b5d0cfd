//! Misbehaving bodies, and a watched one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use tokio::sync::mpsc;
use tokio::time::{Interval, interval};

pub type AnswerBody = BoxBody<Bytes, io::Error>;

/// Returns a body that yields one of these frames per poll.
pub fn of_frames<E>(frames: impl IntoIterator<Item = Result<&'static str, E>>) -> FrameList<E> {
    FrameList(frames.into_iter().collect())
}

pub struct FrameList<E>(VecDeque<Result<&'static str, E>>);

impl<E: Unpin> Body for FrameList<E> {
    type Data = Bytes;
    type Error = E;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, E>>> {
        Poll::Ready(self.0.pop_front().map(|frame| frame.map(|data| Frame::data(data.into()))))
    }
}

/// Returns a body with some data followed by an error.
pub fn failing() -> AnswerBody {
    of_frames([Ok("some"), Err(io::Error::from(io::ErrorKind::UnexpectedEof))]).boxed()
}

/// Returns an endless body that yields a byte per interval.
pub fn endless(every: Duration) -> AnswerBody {
    Endless(interval(every)).boxed()
}

struct Endless(Interval);

impl Body for Endless {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        ready!(self.0.poll_tick(cx));
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b".")))))
    }
}

/// The observed state of a body.
#[derive(Clone, Default)]
pub struct Watch {
    polls: Arc<AtomicUsize>,
    dropped: Arc<AtomicBool>,
}

impl Watch {
    /// The number of polls.
    pub fn polls(&self) -> usize {
        self.polls.load(Ordering::SeqCst)
    }

    pub fn is_dropped(&self) -> bool {
        self.dropped.load(Ordering::SeqCst)
    }
}

/// Wraps a body so that it is watched.
pub fn watched<B>(body: B) -> (Watched<B>, Watch) {
    let watch = Watch::default();
    (Watched { body, watch: watch.clone() }, watch)
}

pub struct Watched<B> {
    body: B,
    watch: Watch,
}

impl<B: Body + Unpin> Body for Watched<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        self.watch.polls.fetch_add(1, Ordering::SeqCst);
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for Watched<B> {
    fn drop(&mut self) {
        self.watch.dropped.store(true, Ordering::SeqCst);
    }
}

/// A body that a test feeds, frame by frame. It ends when its sender is dropped.
#[derive(Debug)]
pub struct FedBody(mpsc::UnboundedReceiver<Bytes>);

impl Body for FedBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(cx).map(|data| data.map(|data| Ok(Frame::data(data))))
    }
}

/// Returns a body, and the sender that feeds it.
pub fn fed() -> (mpsc::UnboundedSender<Bytes>, FedBody) {
    let (sender, frames) = mpsc::unbounded_channel();
    (sender, FedBody(frames))
}
