//! The body of a guarded response, which ends the attempt's pass at its end.

use http::HeaderMap;
use http_body::{Body, Frame};
use reattempt_core::ServerHint;
use reattempt_core::guard::{BodyEnd, Guard, Health};

use super::health::Judged;
use super::pass::Pass;
use crate::call::options::CallOptions;
use crate::protocol::Http;
use crate::protocol::watched::{Watch, Watched};

/// The body of a response returned through a [`GuardLayer`](super::GuardLayer).
///
/// The frames of the inner body are returned unchanged. If the guard holds a place for the response, the place is
/// released when the body ends, fails or is dropped. If a call ends with trailers, its outcome is recorded when the
/// body ends.
pub type GuardedBody<B, G, P = Http> = Watched<B, Option<Pass<G, P>>>;

/// Returns the body of a guarded response.
#[inline]
pub(crate) fn guarded_body<B: Body, G: Guard, P>(inner: B, pass: Option<Pass<G, P>>) -> GuardedBody<B, G, P> {
    // A reader may never poll a body that has already ended.
    if is_held(&pass) && inner.is_end_stream() {
        pass.into_iter().for_each(Pass::over_with_head);
        return Watched { inner, watch: None };
    }
    Watched { inner, watch: pass }
}

/// Watches the body of an HTTP response. The head determines the attempt's outcome, unless the body fails.
impl<B: Body, G: Guard> Watch<B> for Option<Pass<G, Http>> {
    type Error = B::Error;

    #[inline]
    fn error(error: B::Error) -> B::Error {
        error
    }

    fn read_frame(&mut self, frame: Option<Result<&Frame<B::Data>, &B::Error>>, is_over: impl FnOnce() -> bool) {
        let broken = Judged::new(Health::Failed, ServerHint::None);
        watch_pass(self, frame, is_over, |_, _, _| Judged::SERVED, |_, _, _| broken);
    }

    fn is_open(&self) -> bool {
        is_open(self)
    }
}

/// Inspects a frame for a pass. `of_trailers` classifies a call whose response has ended, and `of_error` one whose body
/// failed.
pub(crate) fn watch_pass<G: Guard, P, D, E>(
    pass: &mut Option<Pass<G, P>>,
    frame: Option<Result<&Frame<D>, &E>>,
    is_over: impl FnOnce() -> bool,
    of_trailers: impl FnOnce(&P, &HeaderMap, Option<&CallOptions>) -> Judged,
    of_error: impl FnOnce(&P, &E, Option<&CallOptions>) -> Judged,
) {
    let none = HeaderMap::new();
    let trailers = match frame {
        Some(Ok(frame)) => match frame.trailers_ref() {
            Some(trailers) => trailers,
            None if is_held(pass) && is_over() => &none,
            None => return pass.iter_mut().for_each(Pass::answered),
        },
        Some(Err(error)) => {
            let judge = |protocol: &P, options: Option<&CallOptions>| of_error(protocol, error, options);
            return end_pass(pass, BodyEnd::Broken, judge);
        }
        None => &none,
    };
    end_pass(pass, BodyEnd::Complete, |protocol, options| of_trailers(protocol, trailers, options));
}

/// Returns `true` if the outcome must still be read from the body.
pub(crate) fn is_open<G: Guard, P>(pass: &Option<Pass<G, P>>) -> bool {
    pass.as_ref().is_some_and(Pass::is_open)
}

/// Returns `true` if the outcome was recorded at the head and the guard holds a place.
#[inline]
fn is_held<G: Guard, P>(pass: &Option<Pass<G, P>>) -> bool {
    pass.as_ref().is_some_and(|pass| !pass.is_open())
}

/// Ends the pass. Records the outcome first, unless it was recorded at the head.
fn end_pass<G: Guard, P>(
    pass: &mut Option<Pass<G, P>>,
    end: BodyEnd,
    judge: impl FnOnce(&P, Option<&CallOptions>) -> Judged,
) {
    let Some(pass) = pass.take() else { return };
    let held = if pass.is_open() {
        let judged = judge(&pass.shared.protocol, pass.options());
        pass.judged(judged)
    } else {
        Some(pass)
    };
    held.into_iter().for_each(|pass| pass.over(end));
}
