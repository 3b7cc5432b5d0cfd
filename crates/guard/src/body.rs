//! The body of a guarded response, which ends the attempt's pass at its end.

use std::fmt;

use http::HeaderMap;
use http_body::{Body, Frame};
use reattempt_core::ServerHint;
use reattempt_core::guard::{BodyEnd, Guard, Health};
use reattempt_engine::body::{Watch, Watched};
use reattempt_engine::{CallOptions, Http};

use super::health::Judged;
use super::pass::Pass;

/// The body of a response returned through a [`GuardLayer`](super::GuardLayer).
///
/// The frames of the inner body are returned unchanged. If the guard holds a place for the response, the place is
/// released when the body ends, fails or is dropped. If a call ends with trailers, its outcome is recorded when the
/// body ends.
pub type GuardedBody<B, G, P = Http> = Watched<B, Held<G, P>>;

/// The pass of a response, until the end of its body ends it.
pub struct Held<G: Guard, P>(Option<Pass<G, P>>);

impl<G: Guard, P> Default for Held<G, P> {
    fn default() -> Self {
        Self(None)
    }
}

impl<G: Guard, P> fmt::Debug for Held<G, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns the body of a guarded response.
#[inline]
pub(crate) fn guarded_body<B: Body, G: Guard, P>(inner: B, pass: Option<Pass<G, P>>) -> GuardedBody<B, G, P> {
    let watch = Held(pass);
    // A reader may never poll a body that has already ended.
    if watch.has_outcome() && inner.is_end_stream() {
        watch.0.into_iter().for_each(Pass::over_with_head);
        return Watched::new(inner, Held(None));
    }
    Watched::new(inner, watch)
}

/// Watches the body of an HTTP response. The head determines the attempt's outcome, unless the body fails.
impl<B: Body, G: Guard> Watch<B> for Held<G, Http> {
    type Error = B::Error;

    #[inline]
    fn error(error: B::Error) -> B::Error {
        error
    }

    fn read_frame(&mut self, frame: Option<Result<&Frame<B::Data>, &B::Error>>, is_over: impl FnOnce() -> bool) {
        let broken = Judged::new(Health::Failed, ServerHint::None);
        self.watch(frame, is_over, |_, _, _| Judged::SERVED, |_, _, _| broken);
    }

    fn is_open(&self) -> bool {
        self.needs_outcome()
    }
}

impl<G: Guard, P> Held<G, P> {
    /// Inspects a frame. `of_trailers` classifies a call whose response has ended, and `of_error` one whose body
    /// failed.
    pub(crate) fn watch<D, E>(
        &mut self,
        frame: Option<Result<&Frame<D>, &E>>,
        is_over: impl FnOnce() -> bool,
        of_trailers: impl FnOnce(&P, &HeaderMap, Option<&CallOptions>) -> Judged,
        of_error: impl FnOnce(&P, &E, Option<&CallOptions>) -> Judged,
    ) {
        let none = HeaderMap::new();
        let trailers = match frame {
            Some(Ok(frame)) => match frame.trailers_ref() {
                Some(trailers) => trailers,
                None if self.has_outcome() && is_over() => &none,
                None => return self.0.iter_mut().for_each(Pass::answered),
            },
            Some(Err(error)) => {
                let judge = |protocol: &P, options: Option<&CallOptions>| of_error(protocol, error, options);
                return self.end(BodyEnd::Broken, judge);
            }
            None => &none,
        };
        self.end(BodyEnd::Complete, |protocol, options| of_trailers(protocol, trailers, options));
    }

    /// Returns `true` if the outcome must still be read from the body.
    pub(crate) fn needs_outcome(&self) -> bool {
        self.0.as_ref().is_some_and(Pass::is_open)
    }

    /// Returns `true` if the outcome was recorded at the head and the guard holds a place.
    #[inline]
    fn has_outcome(&self) -> bool {
        self.0.as_ref().is_some_and(|pass| !pass.is_open())
    }

    /// Ends the pass. Records the outcome first, unless it was recorded at the head.
    fn end(&mut self, end: BodyEnd, judge: impl FnOnce(&P, Option<&CallOptions>) -> Judged) {
        let Some(pass) = self.0.take() else { return };
        let held = if pass.is_open() {
            let judged = judge(&pass.shared.protocol, pass.options());
            pass.judged(judged)
        } else {
            Some(pass)
        };
        held.into_iter().for_each(|pass| pass.over(end));
    }
}
