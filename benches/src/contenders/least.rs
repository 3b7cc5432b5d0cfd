//! The least code that keeps a streamed body for a retry: the measured floor of `ReplayBody`.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Request;
use http_body::{Body, Frame};
use parking_lot::Mutex;
use pin_project_lite::pin_project;
use tower_service::Service;

/// A limit on the memory of all kept bodies that no row reaches.
pub(crate) const ROOM: usize = 4 << 30;

/// The least code that keeps the chunks for a reader on another thread: one lock, one clone or copy, one
/// place in a vector, and both bounds, counted as ours are. It has no second reader, no trailers,
/// no error and no size hint.
pub(crate) struct Least<B> {
    kept: Arc<Mutex<LeastKept<B>>>,
}

pub(crate) struct LeastKept<B> {
    source: B,
    /// `true` if a copy of the chunk is kept.
    copies: bool,
    chunks: Vec<Bytes>,
    left: usize,
    memory: Arc<AtomicUsize>,
}

impl<B> Least<B> {
    /// Returns the body, and what is kept of it.
    pub(crate) fn new(source: B, copies: bool, memory: Arc<AtomicUsize>) -> (Self, Arc<Mutex<LeastKept<B>>>) {
        let kept = LeastKept { source, copies, chunks: Vec::new(), left: usize::MAX, memory };
        let kept = Arc::new(Mutex::new(kept));
        (Self { kept: Arc::clone(&kept) }, kept)
    }
}

impl<B> LeastKept<B> {
    pub(crate) fn chunks(&self) -> usize {
        self.chunks.len()
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Least<B> {
    type Data = Bytes;
    type Error = Infallible;

    #[inline(never)]
    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut kept = self.kept.lock();
        let kept = &mut *kept;
        let polled = Pin::new(&mut kept.source).poll_frame(cx);
        // Checked by reference first, which does not move the frame.
        if !matches!(&polled, Poll::Ready(Some(Ok(frame))) if frame.is_data()) {
            return Poll::Ready(None);
        }
        let Poll::Ready(Some(Ok(frame))) = polled else { return Poll::Ready(None) };
        let Ok(data) = frame.into_data() else { return Poll::Ready(None) };
        let length = data.len();
        let take = |used: usize| used.checked_add(length).filter(|sum| *sum <= ROOM);
        if length > kept.left || kept.memory.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Poll::Ready(None);
        }
        kept.left -= length;
        kept.chunks.push(match kept.copies {
            true => Bytes::copy_from_slice(&data),
            false => data.clone(),
        });
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.kept.lock().source.is_end_stream()
    }
}

/// A service that keeps each gRPC body, from its first poll until the response: the least that a retried gRPC call adds
/// to one of HTTP.
#[derive(Clone)]
pub(crate) struct KeepsLeast<S> {
    pub(crate) inner: S,
    pub(crate) memory: Arc<AtomicUsize>,
}

type Boxed = tonic::body::Body;

impl<S: Service<Request<Boxed>>> Service<Request<Boxed>> for KeepsLeast<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = Holding<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Boxed>) -> Self::Future {
        let mut held = None;
        let request = request.map(|body| {
            let (body, kept) = Least::new(body, true, Arc::clone(&self.memory));
            held = Some(kept);
            Boxed::new(body)
        });
        Holding { inner: self.inner.call(request), held }
    }
}

pin_project! {
    pub(crate) struct Holding<F> {
        #[pin]
        inner: F,
        held: Option<Arc<Mutex<LeastKept<Boxed>>>>,
    }
}

impl<F: Future> Future for Holding<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let output = this.inner.poll(cx);
        if output.is_ready() {
            *this.held = None;
        }
        output
    }
}
