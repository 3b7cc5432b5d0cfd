//! The body of a guarded response: it ends the pass of its attempt.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use reattempt_core::ServerHint;
use reattempt_core::guard::{BodyEnd, Guard, Health};

use super::health::Judged;
use super::pass::Pass;
use crate::call::options::CallOptions;
use crate::protocol::{Http, Protocol};

/// A protocol that may read the outcome of a call from the end of a response body. Sealed.
pub trait JudgeBody<E>: Protocol {
    /// Returns the health of a call whose response has ended with these trailers.
    #[doc(hidden)]
    fn of_trailers(&self, trailers: &HeaderMap, options: Option<&CallOptions>) -> Judged {
        let _ = (trailers, options);
        Judged::SERVED
    }

    /// Returns the health of a call whose response body failed.
    #[doc(hidden)]
    fn of_broken_body(&self, error: &E, options: Option<&CallOptions>) -> Judged {
        let _ = (error, options);
        Judged::new(Health::Failed, ServerHint::None)
    }
}

/// HTTP is judged at the head of the response.
impl<E> JudgeBody<E> for Http {}

pin_project! {
    /// The body of a response behind a [`GuardLayer`](super::GuardLayer).
    ///
    /// It returns the frames of the inner service's body unchanged. A guard that holds a place for the response gets it
    /// back when the body ends, fails or is dropped. Calls that end with trailers are judged here.
    pub struct GuardedBody<B, G, K = Http>
    where
        G: Guard,
    {
        #[pin]
        inner: B,
        pass: Option<Pass<G, K>>,
    }
}

impl<B: Body, G: Guard, K> GuardedBody<B, G, K> {
    #[inline]
    pub(crate) fn new(inner: B, pass: Option<Pass<G, K>>) -> Self {
        // A reader may never poll a body that has ended.
        if is_held(&pass) && inner.is_end_stream() {
            pass.into_iter().for_each(Pass::over_with_head);
            return Self { inner, pass: None };
        }
        Self { inner, pass }
    }
}

impl<B, G, K> Body for GuardedBody<B, G, K>
where
    B: Body,
    G: Guard,
    K: JudgeBody<B::Error>,
{
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.inner.as_mut().poll_frame(cx));
        match &frame {
            Some(Ok(frame)) => match frame.trailers_ref() {
                Some(trailers) => complete(this.pass, trailers),
                None if is_held(this.pass) && this.inner.is_end_stream() => {
                    complete(this.pass, &HeaderMap::new());
                }
                None => this.pass.iter_mut().for_each(Pass::answered),
            },
            Some(Err(error)) => end(this.pass, BodyEnd::Broken, |protocol, options| {
                protocol.of_broken_body(error, options)
            }),
            None => complete(this.pass, &HeaderMap::new()),
        }
        Poll::Ready(frame)
    }

    /// Returns `false` until the outcome has been read, so that the reader polls that far.
    fn is_end_stream(&self) -> bool {
        !self.pass.as_ref().is_some_and(Pass::is_open) && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// Returns `true` if the attempt was judged at its head, and the guard holds a place.
#[inline]
fn is_held<G: Guard, K>(pass: &Option<Pass<G, K>>) -> bool {
    pass.as_ref().is_some_and(|pass| !pass.is_open())
}

/// Ends the pass of a body that was read to its end.
fn complete<G: Guard, K: JudgeBody<E>, E>(pass: &mut Option<Pass<G, K>>, trailers: &HeaderMap) {
    end(pass, BodyEnd::Complete, |protocol, options| {
        JudgeBody::<E>::of_trailers(protocol, trailers, options)
    });
}

/// Ends the pass. Judges the attempt first, unless that was done at the head.
fn end<G: Guard, K>(
    pass: &mut Option<Pass<G, K>>,
    end: BodyEnd,
    judge: impl FnOnce(&K, Option<&CallOptions>) -> Judged,
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

/// An empty body whose attempt has ended.
impl<B: Default, G: Guard, K> Default for GuardedBody<B, G, K> {
    fn default() -> Self {
        Self { inner: B::default(), pass: None }
    }
}

impl<B: fmt::Debug, G: Guard, K> fmt::Debug for GuardedBody<B, G, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GuardedBody").field("inner", &self.inner).field("pass", &self.pass).finish()
    }
}
