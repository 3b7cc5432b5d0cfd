//! A body that follows a script, and readers that are polled by hand.

pub(crate) mod course;

use std::cell::Cell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::marker::{PhantomData, PhantomPinned};
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use reattempt_replay::{ReplayBody, ReplayError, ReplayLimits, ReplayMemory};

pub(crate) type BoxError = Box<dyn Error + Send + Sync>;
pub(crate) type Reader = Pin<Box<ReplayBody<Script>>>;

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Data(&'static [u8]),
    Trailers(&'static str),
    Fail,
    /// Pending once, after waking itself.
    Yield,
    /// Pending until [`Control::open`].
    Wait,
}

#[derive(Debug)]
pub(crate) struct Boom;

impl fmt::Display for Boom {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("boom")
    }
}

impl Error for Boom {}

impl From<Infallible> for Boom {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// The test's handle to a script.
#[derive(Default)]
pub(crate) struct Control {
    waker: Mutex<Option<Waker>>,
    open: AtomicUsize,
    pub(crate) polls: AtomicUsize,
}

impl Control {
    /// Lets one `Wait` pass, for whichever reader polls next.
    pub(crate) fn open_silently(&self) {
        self.open.fetch_add(1, Ordering::SeqCst);
    }

    /// Lets one `Wait` pass. Returns `true` if a reader was woken.
    pub(crate) fn open(&self) -> bool {
        self.open_silently();
        let waker = self.waker.lock().unwrap().take();
        let waits = waker.is_some();
        if let Some(waker) = waker {
            waker.wake();
        }
        waits
    }
}

pin_project! {
    /// A body that is `Send` and neither `Sync` nor `Unpin`.
    pub(crate) struct Script {
        steps: VecDeque<Step>,
        hint: SizeHint,
        tells_end: bool,
        control: Arc<Control>,
        not_sync: PhantomData<Cell<()>>,
        #[pin]
        not_unpin: PhantomPinned,
    }
}

impl Script {
    pub(crate) fn new(steps: &[Step]) -> (Self, Arc<Control>) {
        let control = Arc::new(Control::default());
        let script = Self {
            steps: steps.iter().cloned().collect(),
            hint: SizeHint::default(),
            tells_end: true,
            control: Arc::clone(&control),
            not_sync: PhantomData,
            not_unpin: PhantomPinned,
        };
        (script, control)
    }

    /// Sets an exact size hint.
    pub(crate) fn exact(self) -> Self {
        let length = data_len(&self.steps);
        self.hinting(SizeHint::with_exact(length))
    }

    /// Sets a size hint that need not be true.
    pub(crate) fn hinting(mut self, hint: SizeHint) -> Self {
        self.hint = hint;
        self
    }

    /// If `tells_end`, the body reports its end before it is polled for the frame after the last.
    pub(crate) fn tells_end(mut self, tells_end: bool) -> Self {
        self.tells_end = tells_end;
        self
    }
}

pub(crate) fn data_len<'a>(steps: impl IntoIterator<Item = &'a Step>) -> u64 {
    let length = |step: &Step| if let Step::Data(data) = step { data.len() } else { 0 };
    steps.into_iter().map(|step| length(step) as u64).sum()
}

impl Body for Script {
    type Data = Bytes;
    type Error = Boom;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Boom>>> {
        let this = self.project();
        this.control.polls.fetch_add(1, Ordering::SeqCst);
        while let Some(Step::Wait) = this.steps.front() {
            *this.control.waker.lock().unwrap() = Some(cx.waker().clone());
            let take = |open: usize| open.checked_sub(1);
            if this.control.open.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
                return Poll::Pending;
            }
            this.control.waker.lock().unwrap().take();
            this.steps.pop_front();
        }
        Poll::Ready(match this.steps.pop_front() {
            None => None,
            Some(Step::Data(data)) => Some(Ok(Frame::data(Bytes::from_static(data)))),
            Some(Step::Trailers(value)) => Some(Ok(Frame::trailers(trailers(value)))),
            Some(Step::Fail) => Some(Err(Boom)),
            Some(Step::Yield | Step::Wait) => {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
        })
    }

    fn is_end_stream(&self) -> bool {
        self.tells_end && self.steps.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::clone(&self.hint)
    }
}

pub(crate) fn trailers(value: &'static str) -> HeaderMap {
    HeaderMap::from_iter([(http::HeaderName::from_static("checksum"), HeaderValue::from_static(value))])
}

/// The result that a reader got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Data(Bytes),
    Trailers(HeaderMap),
    Source,
    NotKept,
    Superseded,
    End,
}

/// Returns the results that a reader of these steps must get.
pub(crate) fn expected(steps: &[Step]) -> Vec<Seen> {
    let mut seen = Vec::new();
    for step in steps {
        match step {
            Step::Data(data) => seen.push(Seen::Data(Bytes::from_static(data))),
            Step::Trailers(value) => seen.push(Seen::Trailers(trailers(value))),
            Step::Fail => {
                seen.push(Seen::Source);
                break;
            }
            Step::Yield | Step::Wait => {}
        }
    }
    seen.push(Seen::End);
    seen
}

/// Creates a reader of a body whose frames are kept by reference. The body is in memory, but not ready when it is
/// created.
pub(crate) fn reader(steps: &[Step], limits: &ReplayLimits) -> Reader {
    let steps: Vec<_> = std::iter::once(Step::Yield).chain(steps.iter().cloned()).collect();
    Box::pin(ReplayBody::in_memory(Script::new(&steps).0, limits))
}

/// Creates a reader of a body whose frames are copied.
pub(crate) fn streamed(steps: &[Step], limits: &ReplayLimits) -> Reader {
    Box::pin(ReplayBody::new(Script::new(steps).0, limits))
}

/// Removes the framing: data in one piece, without empty frames.
pub(crate) fn joined(seen: &[Seen]) -> Vec<Seen> {
    let mut joined = Vec::new();
    let mut piece = Vec::new();
    for seen in seen {
        match seen {
            Seen::Data(data) => piece.extend_from_slice(data),
            other => {
                joined.extend(take_piece(&mut piece));
                joined.push(other.clone());
            }
        }
    }
    joined.extend(take_piece(&mut piece));
    joined
}

fn take_piece(piece: &mut Vec<u8>) -> Option<Seen> {
    let data = std::mem::take(piece);
    (!data.is_empty()).then(|| Seen::Data(data.into()))
}

pub(crate) fn clone(reader: &Reader) -> Reader {
    Box::pin(reader.try_clone().expect("it can be cloned"))
}

/// Returns limits that nothing here reaches.
pub(crate) fn unlimited() -> ReplayLimits {
    ReplayLimits::default().per_call(usize::MAX).memory(ReplayMemory::new(usize::MAX))
}

/// Polls once.
pub(crate) fn poll<B>(reader: &mut Pin<Box<ReplayBody<B>>>, waker: &Waker) -> Poll<Seen>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    reader.as_mut().poll_frame(&mut Context::from_waker(waker)).map(|frame| match frame {
        None => Seen::End,
        Some(Ok(frame)) => match frame.into_data() {
            Ok(data) => Seen::Data(data),
            Err(frame) => Seen::Trailers(frame.into_trailers().unwrap()),
        },
        Some(Err(error)) => match error.downcast_ref::<ReplayError>().unwrap() {
            ReplayError::Source(source) => {
                assert!(source.is::<Boom>());
                assert!(error.source().unwrap().is::<Boom>());
                Seen::Source
            }
            ReplayError::NotKept => Seen::NotKept,
            ReplayError::Superseded => Seen::Superseded,
            other => panic!("{other}"),
        },
    })
}

/// Reads to the end. The body may wait only for itself.
pub(crate) fn read_all<B>(reader: &mut Pin<Box<ReplayBody<B>>>) -> Vec<Seen>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut seen = Vec::new();
    let flag = Flag::new();
    while seen.last() != Some(&Seen::End) {
        match poll(reader, &flag.waker()) {
            Poll::Ready(next) => seen.push(next),
            Poll::Pending => assert!(flag.take() > 0, "nobody would wake this reader"),
        }
    }
    seen
}

/// A waker that counts its wakes.
pub(crate) struct Flag(AtomicUsize);

impl Flag {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(AtomicUsize::new(0)))
    }

    pub(crate) fn waker(self: &Arc<Self>) -> Waker {
        Waker::from(Arc::clone(self))
    }

    /// Returns the wakes since the last call.
    pub(crate) fn take(&self) -> usize {
        self.0.swap(0, Ordering::SeqCst)
    }
}

impl Wake for Flag {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}
