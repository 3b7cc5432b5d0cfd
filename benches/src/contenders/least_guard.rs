//! The least layer that keeps the contract of a guard: the measured floor of our guard layers.
//!
//! Its rule is one count of the calls in flight. All else is the contract: the destination of the request, the deadline
//! of the call, one reading of the clock, and a pass that the future and the body hold, and that ends exactly once.

use std::borrow::Cow;
use std::hint::black_box;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;
use tokio::time::Instant;
use tower_service::Service;

/// The deadline of a call, in the extensions of its request.
#[derive(Clone, Copy)]
pub(crate) struct Latest(pub(crate) Instant);

/// A client in front of one server, behind the least guard.
#[derive(Clone)]
pub(crate) struct LeastGuard<S> {
    inner: S,
    gate: Arc<Gate>,
}

/// The state of the only destination.
pub(crate) struct Gate {
    destination: &'static str,
    limit: u64,
    /// `true` if a place is held until the response body ends.
    to_the_end: bool,
    in_flight: AtomicU64,
    /// Calls that have ended, and in the upper half the failures among them.
    ends: AtomicU64,
}

impl<S> LeastGuard<S> {
    pub(crate) fn new(inner: S, limit: u64, to_the_end: bool) -> Self {
        let gate = Gate {
            destination: "shop.example",
            limit,
            to_the_end,
            in_flight: AtomicU64::new(0),
            ends: AtomicU64::new(0),
        };
        Self { inner, gate: Arc::new(gate) }
    }

    /// Returns the number of calls in flight.
    #[cfg(feature = "peers")]
    pub(crate) fn in_flight(&self) -> u64 {
        self.gate.in_flight.load(Ordering::Relaxed)
    }
}

impl Gate {
    fn enter(&self, destination: &str) -> bool {
        if destination != self.destination {
            return false;
        }
        // A count that passes the limit is taken back.
        let enters = self.in_flight.fetch_add(1, Ordering::AcqRel) < self.limit;
        if !enters {
            self.in_flight.fetch_sub(1, Ordering::AcqRel);
        }
        enters
    }
}

/// Returns the destination: the authority in lower case, as if every scheme were http.
fn destination(uri: &Uri) -> Cow<'_, str> {
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let is_plain = !authority.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'@');
    if is_plain { authority.into() } else { authority.to_ascii_lowercase().into() }
}

impl<S, A, B> Service<Request<A>> for LeastGuard<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    B: Body<Data = Bytes>,
{
    type Response = Response<Held<B>>;
    type Error = Failed<S::Error>;
    type Future = Guarded<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.inner.poll_ready(cx).map_err(Failed::Inner)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let deadline = request.extensions().get::<Latest>().map(|latest| latest.0);
        let now = Instant::now();
        if deadline.is_some_and(|deadline| deadline <= now) {
            return Guarded::NotSent { late: true };
        }
        if !self.gate.enter(&destination(request.uri())) {
            return Guarded::NotSent { late: false };
        }
        let pass = Pass { gate: Arc::clone(&self.gate), since: now, deadline };
        Guarded::Sent { pass: Some(pass), attempt: self.inner.call(request) }
    }
}

/// A place, freed when it is dropped.
pub(crate) struct Pass {
    gate: Arc<Gate>,
    /// The moment at which the call was sent.
    since: Instant,
    /// There until the outcome is known.
    deadline: Option<Instant>,
}

impl Pass {
    /// Records the outcome. Returns the pass if the place is held until the body ends.
    fn judged(mut self, failed: bool) -> Option<Self> {
        self.deadline = None;
        // A guard gets this moment with the outcome.
        black_box(self.since);
        self.gate.ends.fetch_add(1 + (u64::from(failed) << 32), Ordering::Relaxed);
        self.gate.to_the_end.then_some(self)
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        // A call that is dropped at its deadline is a timeout.
        if self.deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            self.gate.ends.fetch_add(1 + (1 << 32), Ordering::Relaxed);
        }
        self.gate.in_flight.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The error of a call.
#[derive(Debug)]
pub(crate) enum Failed<E> {
    /// The guard refused the call.
    Refused,
    /// The deadline had passed.
    Late,
    Inner(E),
}

pin_project! {
    /// The future of a call.
    #[project = GuardedProjection]
    pub(crate) enum Guarded<F> {
        NotSent { late: bool },
        Sent {
            pass: Option<Pass>,
            #[pin]
            attempt: F,
        },
    }
}

impl<F, B, E> Future for Guarded<F>
where
    F: Future<Output = Result<Response<B>, E>>,
    B: Body<Data = Bytes>,
{
    type Output = Result<Response<Held<B>>, Failed<E>>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            GuardedProjection::NotSent { late } => Poll::Ready(Err(if *late { Failed::Late } else { Failed::Refused })),
            GuardedProjection::Sent { pass, attempt } => {
                let outcome = ready!(attempt.poll(cx));
                let pass = pass.take();
                Poll::Ready(match outcome {
                    Ok(response) => {
                        let failed = response.status().is_server_error();
                        let pass = pass.and_then(|pass| pass.judged(failed));
                        Ok(response.map(|inner| Held::new(inner, pass)))
                    }
                    Err(error) => {
                        drop(pass.and_then(|pass| pass.judged(true)));
                        Err(Failed::Inner(error))
                    }
                })
            }
        }
    }
}

pin_project! {
    /// The body of a response, which may hold the place of its call.
    pub(crate) struct Held<B> {
        #[pin]
        inner: B,
        pass: Option<Pass>,
    }
}

impl<B: Body> Held<B> {
    fn new(inner: B, pass: Option<Pass>) -> Self {
        // A reader may never poll a body that has ended.
        let pass = pass.filter(|_| !inner.is_end_stream());
        Self { inner, pass }
    }
}

impl<B: Body> Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        let mut this = self.project();
        let frame = ready!(this.inner.as_mut().poll_frame(cx));
        if !matches!(frame, Some(Ok(_))) || this.inner.is_end_stream() {
            *this.pass = None;
        }
        Poll::Ready(frame)
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }
}
