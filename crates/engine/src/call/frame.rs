//! The frame of an attempt: facts that layers pass inwards separately from the request. These are the endpoints that
//! the call has tried, the call's deadline, the attempt's own limit, and a watch on a streamed upload. A set of
//! endpoints passes the endpoint that it picked back to the layer.
//!
//! Extensions would not work: some requests have none, some layers do not forward them, and a request's first extension
//! costs three allocations. Instead, a layer opens a frame around the `call` of its inner service. A frame consists of
//! thread-local values, like a tracing span. A pick outside every frame is not recorded. Frames nest, and each frame
//! has only its own picks. The deadline is that of the innermost frame with a deadline.
//!
//! A service that sends later, such as a guard that waits, stores the frame as a [`Late`]. Other layers may call their
//! inner service only when they are polled. Until the attempt's endpoint is known, the retry layer therefore also opens
//! its frame around each poll.

use std::cell::{Cell, RefCell};
use std::sync::{Arc, OnceLock};

use reattempt_control::{EndpointId, PickedTier, Trail};

use super::clock::Instant;
use super::in_use;
use super::layer_terms::LayerTerms;

/// The innermost frame of a thread, or the endpoint that was picked in it.
#[derive(Debug, Clone, Copy, Default)]
pub enum Frame {
    /// There is no frame.
    #[default]
    None,
    /// The first attempt of a call is being sent.
    First,
    /// A later attempt is being sent; `TRAILS` contains the earlier endpoints.
    Next,
    /// The attempt was sent to this endpoint.
    Picked(Pick),
    /// The attempt will be sent later, and `LATE` will receive its pick.
    Deferred,
}

/// The endpoint of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pick {
    /// The endpoint.
    pub id: EndpointId,
    /// `true` if there was another untried endpoint in service.
    pub elsewhere: bool,
    /// The tier of the endpoint, if there are several, which share no state.
    pub tier: Option<PickedTier>,
    /// `true` if the call stays in that tier.
    pub stays: bool,
}

thread_local! {
    static FRAME: Cell<Frame> = const { Cell::new(Frame::None) };
    /// The endpoints for each open [`Frame::Next`]. Those of the innermost one are the last.
    static TRAILS: RefCell<Vec<Trail>> = const { RefCell::new(Vec::new()) };
    /// The slot for the pick of [`Frame::Deferred`].
    static LATE: RefCell<Vec<Arc<OnceLock<Tried>>>> = const { RefCell::new(Vec::new()) };
    /// The deadline of the innermost frame that has one.
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
    static OPENED: Cell<Opened> = const { Cell::new(Opened::Unknown) };
    /// The terms for `Opened::Special`.
    static TERMS: RefCell<LayerTerms> = const { RefCell::new(LayerTerms { limit: None, source: None, fresh: false }) };
}

/// The opening of the frame of an attempt.
#[derive(Debug, Clone, Copy)]
enum Opened {
    /// The time was not read, or a layer has taken it.
    Unknown,
    /// The frame with a deadline was opened at this time.
    At(Instant),
    /// The attempt has terms in `TERMS`.
    // A variant here, because guards look here in any case. Attempts without such terms thus cost them nothing.
    Special,
}

/// The frame of an attempt that is being sent. Dropping it restores the outer frame, even after a panic.
// A guard and not a closure, because a closure would copy the request, which is large, once more.
#[allow(missing_debug_implementations, reason = "only layers of this workspace name it")]
pub struct OpenFrame {
    outer: Frame,
}

impl Drop for OpenFrame {
    #[inline]
    fn drop(&mut self) {
        FRAME.set(self.outer);
    }
}

impl OpenFrame {
    /// Opens the frame of a call's first attempt, unless no endpoint can be picked.
    #[inline]
    pub(crate) fn first() -> Option<Self> {
        in_use::ENDPOINTS.is_begun().then(|| Self { outer: FRAME.replace(Frame::First) })
    }

    /// Closes the frame of a first attempt, and returns that attempt's endpoint.
    #[inline]
    pub(crate) fn close_first(frame: Option<Self>) -> Frame {
        frame.map_or(Frame::First, Self::close)
    }

    /// Opens the frame of a call's first attempt, unless an outer layer has opened one.
    #[doc(hidden)]
    pub fn outermost() -> Option<Self> {
        if let Frame::None = FRAME.get() { Self::first() } else { None }
    }

    /// Returns the endpoint of the attempt that was just sent in the innermost frame, which stays open.
    #[doc(hidden)]
    pub fn current() -> Tried {
        match FRAME.get() {
            Frame::Deferred => LATE.with_borrow(|late| late.last().cloned()).map_or(Tried::Nowhere, Tried::Later),
            frame => frame.into(),
        }
    }

    /// Opens the frame of an attempt after those to the endpoints in `trail`.
    pub(crate) fn next(trail: &Trail) -> OpenNext {
        // A thread that is ending has no trails any more.
        let open = || TRAILS.try_with(|trails| trails.borrow_mut().push(*trail)).ok();
        if trail.ids().is_empty() || open().is_none() {
            return Self::first_again();
        }
        OpenNext { _trail: Some(OpenTrail), frame: Self { outer: FRAME.replace(Frame::Next) } }
    }

    /// Opens the frame of an attempt without a trail: a first one, which may have been sent before.
    pub(crate) fn first_again() -> OpenNext {
        OpenNext { _trail: None, frame: Self { outer: FRAME.replace(Frame::First) } }
    }

    /// Closes the frame and returns the attempt's endpoint.
    #[doc(hidden)]
    #[inline]
    pub fn close(self) -> Frame {
        FRAME.get()
    }
}

/// The frame of an attempt that is sent again or later. Dropping it also restores the outer trail.
pub(crate) struct OpenNext {
    /// `None` if the attempt has no trail.
    _trail: Option<OpenTrail>,
    frame: OpenFrame,
}

/// The last one of `TRAILS`, which dropping this value removes. Frames are closed in reverse order.
struct OpenTrail;

impl Drop for OpenTrail {
    fn drop(&mut self) {
        let _ = TRAILS.try_with(|trails| trails.borrow_mut().pop());
    }
}

impl OpenNext {
    /// Closes the frame and returns the attempt's endpoint.
    pub(crate) fn close(self) -> Tried {
        self.frame.close().into()
    }
}

/// The times of the attempt that is being sent. Dropping it restores the outer frame's deadline, even after a panic.
#[allow(missing_debug_implementations, reason = "only layers of this workspace name it")]
pub struct Timed {
    outer: Option<Instant>,
}

impl Timed {
    /// Opens the frame of an attempt whose call ends at `deadline`, if it has one. `now` is the current time, if it was
    /// read.
    #[inline]
    pub(crate) fn until(deadline: Option<Instant>, now: Option<Instant>) -> Option<Self> {
        deadline?;
        OPENED.set(now.map_or(Opened::Unknown, Opened::At));
        Some(Self { outer: DEADLINE.replace(deadline) })
    }

    /// Opens the frame of an attempt that is sent from a poll. The deadline of whoever polls does not apply to it.
    pub fn only(deadline: Option<Instant>) -> Self {
        OPENED.set(Opened::Unknown);
        Self { outer: DEADLINE.replace(deadline) }
    }
}

impl Drop for Timed {
    #[inline]
    fn drop(&mut self) {
        DEADLINE.set(self.outer);
        OPENED.set(Opened::Unknown);
    }
}

/// The frame of an attempt with terms of its layer. It is opened last. Dropping it restores the outer frame's terms,
/// even after a panic.
pub(crate) struct Special {
    outer: LayerTerms,
}

impl Special {
    /// Opens the frame of an attempt, if it has any terms.
    #[inline]
    pub(crate) fn open(terms: Option<LayerTerms>) -> Option<Self> {
        terms.map(Self::of)
    }

    #[cold]
    fn of(terms: LayerTerms) -> Self {
        OPENED.set(if terms.is_any() { Opened::Special } else { Opened::Unknown });
        Self { outer: TERMS.replace(terms) }
    }
}

impl Drop for Special {
    #[cold]
    fn drop(&mut self) {
        OPENED.set(if self.outer.is_any() { Opened::Special } else { Opened::Unknown });
        TERMS.set(std::mem::take(&mut self.outer));
    }
}

/// Returns the terms of the attempt that is being sent, or none.
pub(crate) fn layer_terms() -> LayerTerms {
    match OPENED.get() {
        Opened::Special => TERMS.with_borrow(LayerTerms::clone),
        _ => LayerTerms::default(),
    }
}

/// Returns the time at which the outer layer sent the attempt. Only the next inner layer reuses that layer's reading of
/// the clock. Calls `special` if the attempt has terms of the outer layer.
#[inline]
pub(crate) fn arrived(special: impl FnOnce(LayerTerms)) -> Instant {
    match OPENED.get() {
        Opened::At(now) => {
            OPENED.set(Opened::Unknown);
            now
        }
        Opened::Unknown => Instant::now(),
        Opened::Special => {
            special(layer_terms());
            Instant::now()
        }
    }
}

impl Frame {
    /// Returns the deadline of the call whose attempt is being sent.
    #[inline]
    pub fn deadline() -> Option<Instant> {
        DEADLINE.get()
    }

    /// Returns the endpoints that the innermost frame's call has tried, or `None` for a first attempt.
    #[inline]
    pub fn trail() -> Option<Trail> {
        if let Self::Next = FRAME.get() { last_trail() } else { None }
    }

    /// Records the endpoint of the attempt that is being sent. Only the first pick in a frame is recorded.
    #[inline]
    pub fn picked(pick: Pick) {
        if let Self::First | Self::Next = FRAME.get() {
            FRAME.set(Self::Picked(pick));
        }
    }

    /// Returns `true` if the attempt is sent later, so that its endpoint is not known yet.
    #[inline]
    pub(crate) fn is_late(self) -> bool {
        matches!(self, Self::Deferred)
    }
}

/// The endpoint of an attempt, or a slot for it.
#[derive(Debug, Clone, Default)]
pub enum Tried {
    /// No endpoint was picked.
    #[default]
    Nowhere,
    /// This endpoint.
    At(Pick),
    /// The slot of an attempt that is sent later.
    Later(Arc<OnceLock<Tried>>),
}

/// Takes the slot for a later pick from the thread, because the frame was just closed.
impl From<Frame> for Tried {
    fn from(frame: Frame) -> Self {
        match frame {
            Frame::Picked(pick) => Self::At(pick),
            Frame::Deferred => LATE.with_borrow_mut(Vec::pop).map_or(Self::Nowhere, Self::Later),
            Frame::None | Frame::First | Frame::Next => Self::Nowhere,
        }
    }
}

impl Tried {
    /// Returns the endpoint, if it is known.
    pub fn pick(&self) -> Option<Pick> {
        match self {
            Self::Nowhere => None,
            Self::At(pick) => Some(*pick),
            Self::Later(later) => later.get()?.pick(),
        }
    }

    /// Returns `true` if the attempt was sent without a pick. A layer that calls its inner service from a poll may not
    /// have done so yet.
    pub(crate) fn is_missing(&self) -> bool {
        match self {
            Self::Nowhere => true,
            Self::At(_) => false,
            Self::Later(later) => later.get().is_some_and(Self::is_missing),
        }
    }

    /// Returns this value if an inner layer picked an endpoint or will do so.
    pub fn known(self) -> Option<Self> {
        (!matches!(self, Self::Nowhere)).then_some(self)
    }

    /// Adds the endpoint to the call's trail. Returns `true` if there is another untried endpoint.
    pub fn follow(&self, trail: &mut Trail) -> bool {
        self.pick().is_some_and(|pick| {
            trail.push(pick.id);
            if let Some(tier) = pick.tier.filter(|_| pick.stays) {
                trail.stay_in(tier.number);
            }
            pick.elsewhere
        })
    }
}

#[cold]
fn last_trail() -> Option<Trail> {
    TRAILS.try_with(|trails| trails.borrow().last().copied()).ok().flatten()
}

/// The frame of an attempt that is sent later.
#[derive(Debug)]
pub struct Late {
    /// `None` if there is no frame to record a pick in.
    deferred: Option<Deferred>,
    deadline: Option<Instant>,
    /// The layer's terms, with the time from which the limit counts.
    terms: Option<(LayerTerms, Instant)>,
}

#[derive(Debug)]
struct Deferred {
    /// In a box, because most attempts have none, and waiting futures contain this value.
    trail: Option<Box<Trail>>,
    picked: Arc<OnceLock<Tried>>,
}

impl Late {
    /// Takes the innermost frame, to use it later.
    pub fn take() -> Self {
        let terms = Some(layer_terms()).filter(LayerTerms::is_any);
        let terms = terms.map(|terms| (terms, Instant::now()));
        Self { deferred: Deferred::take(), deadline: Frame::deadline(), terms }
    }

    /// Returns the deadline of the call.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Sends the attempt by calling `send` in its frame.
    pub fn send<R>(&self, send: impl FnOnce() -> R) -> R {
        let _timed = Timed::only(self.deadline);
        let _special = Special::open(self.terms.as_ref().map(|(terms, since)| terms.after(since.elapsed())));
        match &self.deferred {
            Some(deferred) => deferred.send(send),
            None => send(),
        }
    }
}

impl Deferred {
    /// Takes the innermost frame, if it exists and has no pick yet.
    fn take() -> Option<Self> {
        let (Frame::First | Frame::Next) = FRAME.get() else { return None };
        let deferred = Self { trail: Frame::trail().map(Box::new), picked: Arc::default() };
        LATE.with_borrow_mut(|late| late.push(Arc::clone(&deferred.picked)));
        FRAME.set(Frame::Deferred);
        Some(deferred)
    }

    fn send<R>(&self, send: impl FnOnce() -> R) -> R {
        let frame = self.trail.as_deref().map_or_else(OpenFrame::first_again, OpenFrame::next);
        let sent = send();
        // Only the first pick is recorded.
        let _ = self.picked.set(frame.close());
        sent
    }
}
