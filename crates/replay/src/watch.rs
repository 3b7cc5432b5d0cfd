//! Watches on readers, which wake a task when a reader in another task is cut off.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use crate::sync::Lock;
use crate::wakers::{ReaderId, Waiting};

/// A watch on one reader of a [`ReplayBody`](crate::ReplayBody), from [`ReplayBody::watch`](crate::ReplayBody::watch).
/// A watch does not read, keep or delay any frames.
///
/// Use it in a layer that sends several attempts of one request at the same time. If the body outgrows its limits, only
/// the attempt that has sent the most can continue. The other readers' watches become ready immediately, so that the
/// layer can cancel their attempts (gRPC's [A6](https://github.com/grpc/proposal/blob/master/A6-client-retries.md),
/// "Memory Management").
///
/// ```
/// # use std::pin::pin;
/// # use std::task::{Context, Poll, Waker};
/// # use bytes::Bytes;
/// # use http_body::Frame;
/// # use http_body_util::{BodyExt, StreamBody};
/// # use reattempt_replay::{ReplayBody, ReplayLimits};
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
/// # #[derive(Clone)] struct Chunks(u8);
/// # impl http_body::Body for Chunks {
/// #     type Data = Bytes;
/// #     type Error = std::convert::Infallible;
/// #     fn poll_frame(mut self: std::pin::Pin<&mut Self>, _: &mut Context<'_>)
/// #     -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
/// #         self.0 += 1;
/// #         Poll::Ready((self.0 <= 3).then(|| Ok(Frame::data(Bytes::from_static(&[7; 40])))))
/// #     }
/// # }
/// # let chunks = Chunks(0);
/// let limits = ReplayLimits::default().per_call(100);
/// let first = ReplayBody::new(chunks, &limits);
/// let second = first.try_clone().expect("nothing was read yet");
/// let (watch_first, watch_second) = (first.watch(), second.watch());
/// assert_eq!(first.collect().await?.to_bytes().len(), 120);
/// let mut context = Context::from_waker(Waker::noop());
/// assert!(watch_first.poll_cut_off(&mut context).is_pending());
/// assert!(watch_second.poll_cut_off(&mut context).is_ready());
/// # Ok(())
/// # }
/// ```
pub struct ReplayWatch {
    /// `None` if the reader can never be cut off.
    watched: Option<Arc<Watched>>,
    reader: ReaderId,
}

impl ReplayWatch {
    /// Creates a watch on a reader that is never cut off.
    pub(super) fn idle() -> Self {
        Self { watched: None, reader: 0 }
    }

    pub(super) fn new(watched: &Arc<Watched>, reader: ReaderId) -> Self {
        Self { watched: Some(Arc::clone(watched)), reader }
    }

    /// Returns `true` if the reader can never be cut off, because it shares no state with other readers.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.watched.is_none()
    }

    /// Returns `Ready` once the reader is cut off, even if the reader has been dropped. All later polls are also ready.
    ///
    /// A reader is cut off if the body outgrew its [limits](crate::ReplayLimits) while another reader was
    /// ahead, or if another reader [cancelled](crate::ReplayBody::cancel_others) it. An
    /// [idle](Self::is_idle) watch is never ready.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost if the watch is not polled again. If several tasks poll watches on the same reader, only the
    /// last one is woken.
    pub fn poll_cut_off(&self, cx: &mut Context<'_>) -> Poll<()> {
        match &self.watched {
            Some(watched) => watched.poll(self.reader, cx.waker()),
            None => Poll::Pending,
        }
    }
}

impl fmt::Debug for ReplayWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayWatch").finish_non_exhaustive()
    }
}

/// The watched readers of one body. Its lock may be taken while the body's lock is held, but not vice versa.
#[derive(Default)]
pub(super) struct Watched(Lock<WatchState>);

#[derive(Default)]
struct WatchState {
    /// Readers with a lower id are cut off, except the survivor.
    cut_below: ReaderId,
    survivor: ReaderId,
    waiting: Vec<Waiting>,
}

impl WatchState {
    fn is_cut_off(&self, reader: ReaderId) -> bool {
        reader < self.cut_below && reader != self.survivor
    }
}

impl Watched {
    /// Cuts off all readers with an id below `below`, except the survivor. Returns the readers to wake.
    pub(super) fn cut_off(&self, below: ReaderId, survivor: ReaderId) -> Vec<Waiting> {
        let mut contents = self.0.lock();
        contents.cut_below = below;
        contents.survivor = survivor;
        let waiting = std::mem::take(&mut contents.waiting);
        let (cut_off, stays) = waiting.into_iter().partition(|(id, _)| contents.is_cut_off(*id));
        contents.waiting = stays;
        cut_off
    }

    fn poll(&self, reader: ReaderId, waker: &Waker) -> Poll<()> {
        let mut contents = self.0.lock();
        if contents.is_cut_off(reader) {
            return Poll::Ready(());
        }
        let displaced = match contents.waiting.iter_mut().find(|(id, _)| *id == reader) {
            Some((_, known)) if known.will_wake(waker) => None,
            Some((_, known)) => Some(std::mem::replace(known, waker.clone())),
            None => {
                contents.waiting.push((reader, waker.clone()));
                None
            }
        };
        drop(contents);
        // Dropped after the lock, because dropping a waker may run foreign code.
        drop(displaced);
        Poll::Pending
    }
}
