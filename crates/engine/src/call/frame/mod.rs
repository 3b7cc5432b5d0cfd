//! The frame of an attempt: the facts that layers pass to each other beside the request.
//!
//! Inwards go the endpoints that the call has tried, its deadline, and the terms of the layer that sends. Outwards goes
//! the endpoint that a set of endpoints picked. Extensions would not work: some requests have none, some layers do not
//! forward them, and a request's first extension costs three allocations.
//!
//! So a layer opens a [`Frame`] around the `call` of its inner service, as a tracing span is entered. Each thread has
//! one innermost frame, and these rules hold for it:
//!
//! 1. Frames nest, and dropping a frame restores the outer one, even after a panic.
//! 2. A frame without a deadline has that of the frame around it. A frame that is opened in a poll has its own alone.
//! 3. Only the frames of retry and hedge layers have picks. The first pick in such a frame is its attempt's. Another
//!    one is hidden from it, as are those outside every frame.
//! 4. A service that sends later, such as a guard that waits, takes the frame with it as a [`Late`], and the pick
//!    reaches the outer layer through a slot. Other layers may call their inner service only when they are polled.
//!    Until the pick is known, the retry layer therefore also opens its frame around each poll.
//! 5. What is hidden permits nothing. A set with several tiers whose pick is hidden, such as in another task or after
//!    that of a token service, remembers itself to which tier it sent a request's idempotency key.

mod bound_hint;
mod late;
mod tried;

use std::cell::Cell;
use std::mem::ManuallyDrop;
use std::sync::{Arc, OnceLock};

use reattempt_control::{EndpointId, PickedTier, Trail};
use reattempt_core::ServerHint;

use super::clock::Instant;
use super::in_use;
use super::layer_terms::LayerTerms;

pub use late::Late;
pub use tried::Tried;

thread_local! {
    static INNERMOST: Innermost = const { Innermost::new() };
}

/// The innermost frame of a thread. Nothing in it needs a destructor, so that a thread's access to it is not checked.
struct Innermost {
    picks: Cell<Picks>,
    /// The endpoints that the call of a [`Picks::Next`] has tried.
    trail: Cell<Trail>,
    /// The slot for the pick of a [`Picks::Deferred`].
    slot: Cell<Option<ManuallyDrop<Slot>>>,
    deadline: Cell<Option<Instant>>,
    opened: Cell<Opened>,
    /// The terms of an [`Opened::Special`].
    terms: Cell<ManuallyDrop<LayerTerms>>,
    /// The hint that binds only the endpoint of the attempt that is ending.
    bound_hint: Cell<ServerHint>,
}

/// The place for the endpoint of an attempt that is sent later.
type Slot = Arc<OnceLock<Tried>>;

/// The picks of the innermost frame.
#[derive(Clone, Copy)]
enum Picks {
    /// There is no frame with picks.
    None,
    /// The first attempt of a call is being sent.
    First,
    /// A later attempt is being sent.
    Next,
    /// The attempt was sent to this endpoint.
    Picked(Pick),
    /// The attempt will be sent later.
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

/// The opening of the frame of an attempt.
#[derive(Clone, Copy)]
enum Opened {
    /// The time was not read, or a layer has taken it.
    Unknown,
    /// The frame was opened at this time.
    At(Instant),
    /// The attempt has terms.
    // A variant here, because guards look here in any case. Attempts without such terms thus cost them nothing.
    Special,
}

impl Innermost {
    const fn new() -> Self {
        Self {
            picks: Cell::new(Picks::None),
            trail: Cell::new(Trail::new()),
            slot: Cell::new(None),
            deadline: Cell::new(None),
            opened: Cell::new(Opened::Unknown),
            terms: Cell::new(ManuallyDrop::new(LayerTerms::NONE)),
            bound_hint: Cell::new(ServerHint::None),
        }
    }

    /// Returns `true` if the frame has a deadline or terms.
    #[inline]
    fn has_terms(&self) -> bool {
        self.deadline.get().is_some() || !matches!(self.opened.get(), Opened::Unknown)
    }

    fn replace_slot(&self, slot: Option<Slot>) -> Option<Slot> {
        self.slot.replace(slot.map(ManuallyDrop::new)).map(ManuallyDrop::into_inner)
    }

    fn replace_terms(&self, terms: LayerTerms) -> LayerTerms {
        self.opened.set(if terms.is_any() { Opened::Special } else { Opened::Unknown });
        ManuallyDrop::into_inner(self.terms.replace(ManuallyDrop::new(terms)))
    }
}

/// The open frame of an attempt. Dropping it restores the outer frame, even after a panic.
// A guard and not a closure, because a closure would copy the request, which is large, once more.
#[allow(missing_debug_implementations, reason = "only layers of this workspace name it")]
#[must_use = "a frame is closed when it is dropped"]
pub struct Frame(Option<OuterFrame>);

/// The parts of the outer frame that an inner one has replaced. Each is `None` if the inner frame has it too.
#[derive(Default)]
struct OuterFrame {
    picks: Option<(Picks, Option<Slot>)>,
    trail: Option<Trail>,
    deadline: Option<Option<Instant>>,
    terms: Option<LayerTerms>,
}

impl Frame {
    /// Opens the frame of a call's first attempt. `now` is the current time, if it was read.
    #[inline]
    pub(crate) fn first(deadline: Option<Instant>, now: Option<Instant>, terms: Option<LayerTerms>) -> Self {
        let picks = in_use::ENDPOINTS.is_begun();
        if !picks && deadline.is_none() && terms.is_none() {
            return Self(None);
        }
        Self::open(deadline, now, terms, picks)
    }

    /// Opens the frame of an attempt whose pick the outer layer gets.
    #[inline]
    pub(crate) fn passing(deadline: Option<Instant>, now: Option<Instant>, terms: Option<LayerTerms>) -> Self {
        if deadline.is_none() && terms.is_none() {
            return Self(None);
        }
        Self::open(deadline, now, terms, false)
    }

    /// Opens the frame of an attempt whose pick the outer layer gets, if there is one.
    #[inline]
    pub fn outermost(deadline: Option<Instant>, now: Option<Instant>, terms: Option<LayerTerms>) -> Self {
        let is_outermost = || INNERMOST.with(|innermost| matches!(innermost.picks.get(), Picks::None));
        let picks = in_use::ENDPOINTS.is_begun() && is_outermost();
        if !picks && deadline.is_none() && terms.is_none() {
            return Self(None);
        }
        Self::open(deadline, now, terms, picks)
    }

    // Not inlined, because then a frame that is not needed would be copied.
    #[inline(never)]
    fn open(deadline: Option<Instant>, now: Option<Instant>, terms: Option<LayerTerms>, picks: bool) -> Self {
        let mut outer = OuterFrame::default();
        if deadline.is_some() {
            outer.end_at(deadline, now.map_or(Opened::Unknown, Opened::At));
        }
        outer.terms = terms.map(replace_terms);
        if picks {
            outer.pick();
        }
        Self(Some(outer))
    }

    /// Opens the frame of an attempt after those to the endpoints in `trail`. It may be sent from a poll.
    pub(crate) fn next(trail: &Trail, deadline: Option<Instant>, terms: Option<LayerTerms>) -> Self {
        match in_use::ENDPOINTS.is_begun() {
            true => Self::open_late(deadline, terms, Some(trail)),
            false => Self::late(deadline, terms),
        }
    }

    /// Opens the frame of an attempt again, because it may be sent in a poll. There is a set of endpoints.
    pub(crate) fn again(trail: &Trail) -> Self {
        let mut outer = OuterFrame::default();
        outer.pick_after(trail);
        Self(Some(outer))
    }

    /// Opens the frame of an attempt that is sent from a poll. The deadline of whoever polls does not apply to it.
    #[inline]
    pub fn late(deadline: Option<Instant>, terms: Option<LayerTerms>) -> Self {
        if deadline.is_none() && terms.is_none() && !INNERMOST.with(Innermost::has_terms) {
            return Self(None);
        }
        Self::open_late(deadline, terms, None)
    }

    #[inline(never)]
    fn open_late(deadline: Option<Instant>, terms: Option<LayerTerms>, trail: Option<&Trail>) -> Self {
        let mut outer = OuterFrame::default();
        outer.end_at(deadline, Opened::Unknown);
        outer.terms = terms.map(replace_terms);
        if let Some(trail) = trail {
            outer.pick_after(trail);
        }
        Self(Some(outer))
    }

    /// Restores the picks of the outer frame, and returns the attempt's endpoint. The rest is restored when the frame
    /// is dropped.
    // Not by value, because a frame that is moved is copied.
    #[inline(always)]
    pub fn close(&mut self) -> Tried {
        match &mut self.0 {
            Some(outer) if outer.picks.is_some() => outer.close(),
            _ => Tried::Nowhere,
        }
    }

    /// Returns the deadline of the call whose attempt is being sent.
    #[inline]
    pub fn deadline() -> Option<Instant> {
        INNERMOST.with(|innermost| innermost.deadline.get())
    }

    /// Returns the endpoints that the innermost frame's call has tried, or `None` for a first attempt.
    #[inline]
    pub fn trail() -> Option<Trail> {
        INNERMOST.with(|innermost| matches!(innermost.picks.get(), Picks::Next).then(|| innermost.trail.get()))
    }

    /// Returns the endpoint of the attempt that was just sent in the innermost frame, which stays open.
    pub fn current() -> Tried {
        INNERMOST.with(|innermost| {
            let slot = innermost.replace_slot(None);
            innermost.replace_slot(slot.clone());
            Tried::of(innermost.picks.get(), slot)
        })
    }

    /// Returns `true` if no frame gets the pick of the attempt that is being sent.
    #[inline]
    pub fn is_hidden() -> bool {
        INNERMOST.with(|innermost| !matches!(innermost.picks.get(), Picks::First | Picks::Next))
    }

    /// Records the endpoint of the attempt that is being sent.
    #[inline]
    pub fn picked(pick: Pick) {
        INNERMOST.with(|innermost| {
            if let Picks::First | Picks::Next = innermost.picks.get() {
                innermost.picks.set(Picks::Picked(pick));
            }
        })
    }
}

impl OuterFrame {
    #[inline(never)]
    fn close(&mut self) -> Tried {
        self.picks.take().map_or(Tried::Nowhere, restore_picks)
    }

    /// Lets the inner frame get the attempt's pick.
    #[inline]
    fn pick(&mut self) {
        let picks = |innermost: &Innermost| (innermost.picks.replace(Picks::First), innermost.replace_slot(None));
        self.picks = Some(INNERMOST.with(picks));
    }

    fn pick_after(&mut self, trail: &Trail) {
        self.pick();
        if !trail.is_new() {
            self.trail = Some(INNERMOST.with(|innermost| {
                innermost.picks.set(Picks::Next);
                innermost.trail.replace(*trail)
            }));
        }
    }

    #[inline]
    fn end_at(&mut self, deadline: Option<Instant>, opened: Opened) {
        self.deadline = Some(INNERMOST.with(|innermost| {
            innermost.opened.set(opened);
            innermost.deadline.replace(deadline)
        }));
    }
}

impl Drop for OuterFrame {
    #[inline]
    fn drop(&mut self) {
        if let Some(picks) = self.picks.take() {
            restore_picks(picks);
        }
        if let Some(trail) = self.trail {
            INNERMOST.with(|innermost| innermost.trail.set(trail));
        }
        if let Some(terms) = self.terms.take() {
            replace_terms(terms);
        }
        if let Some(deadline) = self.deadline {
            INNERMOST.with(|innermost| {
                innermost.opened.set(Opened::Unknown);
                innermost.deadline.set(deadline);
            });
        }
    }
}

/// Restores the picks of the outer frame, and returns those of the frame that is closed.
#[inline]
fn restore_picks((picks, slot): (Picks, Option<Slot>)) -> Tried {
    INNERMOST.with(|innermost| Tried::of(innermost.picks.replace(picks), innermost.replace_slot(slot)))
}

#[cold]
fn replace_terms(terms: LayerTerms) -> LayerTerms {
    INNERMOST.with(|innermost| innermost.replace_terms(terms))
}

/// Returns the terms of the attempt that is being sent, or none.
pub(crate) fn layer_terms() -> LayerTerms {
    INNERMOST.with(|innermost| match innermost.opened.get() {
        Opened::Special => {
            let terms = innermost.replace_terms(LayerTerms::NONE);
            innermost.replace_terms(terms.clone());
            terms
        }
        _ => LayerTerms::NONE,
    })
}

/// Returns the time at which the outer layer sent the attempt. Only the next inner layer reuses that layer's reading of
/// the clock. Calls `special` if the attempt has terms of the outer layer.
#[inline]
pub(crate) fn arrived(special: impl FnOnce(LayerTerms)) -> Instant {
    let opened = INNERMOST.with(|innermost| {
        let opened = innermost.opened.get();
        if let Opened::At(_) = opened {
            innermost.opened.set(Opened::Unknown);
        }
        opened
    });
    match opened {
        Opened::At(now) => now,
        Opened::Unknown => Instant::now(),
        Opened::Special => {
            special(layer_terms());
            Instant::now()
        }
    }
}
