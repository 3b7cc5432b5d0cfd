//! The endpoints that a call has tried: told by the layer that retries or hedges to the set of endpoints below it, and
//! the pick of the set told to the layer.
//!
//! Between the two are layers that know of neither, and requests without extensions. So a layer opens a frame around
//! the `call` of its inner service: a word of the thread, as a tracing span is. A pick outside of every frame leaves
//! nothing. Frames nest, and each sees its own picks only.
//!
//! A service that sends later, such as a guard that waits, takes the frame along as a [`Deferred`].

use std::cell::{Cell, RefCell};
use std::sync::{Arc, OnceLock};

use reattempt_control::{EndpointId, Trail};

/// The innermost frame of a thread, and the endpoint of an attempt as its frame left it.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Frame {
    /// There is none.
    #[default]
    None,
    /// An attempt is being sent, the first of its call.
    First,
    /// An attempt is being sent, after those in [`TRAIL`].
    Next,
    /// The attempt is sent to this endpoint.
    Picked(Pick),
    /// The attempt is sent later, and [`LATE`] is the place for its pick.
    Deferred,
}

/// The endpoint of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pick {
    pub(crate) id: EndpointId,
    /// `true` if another endpoint was in service that the call had not tried.
    pub(crate) elsewhere: bool,
    /// `true` if the next attempt may go to servers that share no state with this one.
    pub(crate) tiered: bool,
}

thread_local! {
    static FRAME: Cell<Frame> = const { Cell::new(Frame::None) };
    /// The trail of [`Frame::Next`].
    static TRAIL: Cell<Trail> = const { Cell::new(Trail::new()) };
    /// The place for the pick of [`Frame::Deferred`].
    static LATE: RefCell<Option<Arc<OnceLock<Tried>>>> = const { RefCell::new(None) };
}

/// The frame of an attempt that is being sent. Its end restores the outer frame, also after a panic.
// Not a closure: a request is large, and one that moves into a closure is copied once more.
pub(crate) struct Sending {
    outer: Frame,
}

impl Drop for Sending {
    #[inline]
    fn drop(&mut self) {
        FRAME.set(self.outer);
    }
}

impl Sending {
    /// Opens the frame of the first attempt of a call.
    #[inline]
    pub(crate) fn first() -> Self {
        Self { outer: FRAME.replace(Frame::First) }
    }

    /// Opens the frame of an attempt of a call that has tried the endpoints of `trail`.
    pub(crate) fn next(trail: Trail) -> SendingNext {
        let outer = OuterTrail(TRAIL.replace(trail));
        SendingNext { frame: Self { outer: FRAME.replace(Frame::Next) }, outer }
    }

    /// Closes the frame. Returns the endpoint of the attempt.
    #[inline]
    pub(crate) fn close(self) -> Frame {
        FRAME.get()
    }
}

/// The frame of an attempt after others. Its end restores the outer trail too.
pub(crate) struct SendingNext {
    frame: Sending,
    outer: OuterTrail,
}

struct OuterTrail(Trail);

impl Drop for OuterTrail {
    fn drop(&mut self) {
        TRAIL.set(self.0);
    }
}

impl SendingNext {
    /// Closes the frame. Returns the endpoint of the attempt.
    pub(crate) fn close(self) -> Tried {
        drop(self.outer);
        self.frame.close().into()
    }
}

impl Frame {
    /// Returns `true` if the endpoint is known once the attempt has been sent.
    #[inline]
    pub(crate) fn is_late(self) -> bool {
        matches!(self, Self::Deferred)
    }
}

/// The endpoint to which an attempt is sent, or the place for it.
#[derive(Debug, Clone, Default)]
pub(crate) enum Tried {
    #[default]
    Nowhere,
    At(Pick),
    Later(Arc<OnceLock<Tried>>),
}

/// The frame has just been closed: the thread holds the place for a pick to come.
impl From<Frame> for Tried {
    fn from(frame: Frame) -> Self {
        match frame {
            Frame::Picked(pick) => Self::At(pick),
            Frame::Deferred => LATE.take().map_or(Self::Nowhere, Self::Later),
            Frame::None | Frame::First | Frame::Next => Self::Nowhere,
        }
    }
}

impl Tried {
    pub(crate) fn pick(&self) -> Option<Pick> {
        match self {
            Self::Nowhere => None,
            Self::At(pick) => Some(*pick),
            Self::Later(later) => later.get()?.pick(),
        }
    }

    /// Returns this value if there is a set of endpoints below.
    pub(crate) fn known(self) -> Option<Self> {
        (!matches!(self, Self::Nowhere)).then_some(self)
    }

    /// Adds the endpoint to the trail of its call. Returns `true` if another one is left.
    pub(crate) fn follow(&self, trail: &mut Trail) -> bool {
        self.pick().is_some_and(|pick| {
            trail.push(pick.id);
            pick.elsewhere
        })
    }
}

/// Returns the endpoints that the call of the innermost frame has tried.
#[inline]
pub(crate) fn trail() -> Trail {
    match FRAME.get() {
        Frame::Next => TRAIL.get(),
        _ => Trail::new(),
    }
}

/// Records the endpoint of the attempt that is being sent. The first one of a frame counts.
#[inline]
pub(crate) fn picked(pick: Pick) {
    if let Frame::First | Frame::Next = FRAME.get() {
        FRAME.set(Frame::Picked(pick));
    }
}

/// The frame of an attempt that is sent later.
#[derive(Debug)]
pub(crate) struct Deferred {
    trail: Trail,
    picked: Arc<OnceLock<Tried>>,
}

/// Takes the innermost frame along, if there is one that has no pick yet.
pub(crate) fn defer() -> Option<Deferred> {
    let (Frame::First | Frame::Next) = FRAME.get() else { return None };
    let deferred = Deferred { trail: trail(), picked: Arc::default() };
    LATE.replace(Some(Arc::clone(&deferred.picked)));
    FRAME.set(Frame::Deferred);
    Some(deferred)
}

impl Deferred {
    /// Sends the attempt by `send`.
    fn send<R>(&self, send: impl FnOnce() -> R) -> R {
        let frame = Sending::next(self.trail);
        let sent = send();
        // The first one counts.
        let _ = self.picked.set(frame.close());
        sent
    }
}

/// Sends an attempt by `send`, in its frame if it has one.
pub(crate) fn late<R>(deferred: Option<&Deferred>, send: impl FnOnce() -> R) -> R {
    match deferred {
        Some(deferred) => deferred.send(send),
        None => send(),
    }
}
