//! Allocations of hedged calls whose first attempt is faster than the delay: only those of the saved request.

use std::convert::Infallible;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{Empty, Full};
use reattempt::hedge::{Hedge, HedgePolicy};
use reattempt::{Retry, RetryPolicy};
use tower::Service;

/// A server that responds after this many polls and allocates nothing. It is cloned once, when the layer is built.
struct Server {
    polls: u32,
    clones: &'static AtomicUsize,
}

static CLONES: AtomicUsize = AtomicUsize::new(0);

impl Clone for Server {
    fn clone(&self) -> Self {
        self.clones.fetch_add(1, Ordering::SeqCst);
        Self { ..*self }
    }
}

struct Later(u32);

impl Future for Later {
    type Output = Result<Response<Empty<Bytes>>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                Poll::Pending
            }
            None => Poll::Ready(Ok(Response::new(Empty::new()))),
        }
    }
}

impl<B> Service<Request<B>> for Server {
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Later;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Request<B>) -> Later {
        Later(self.polls)
    }
}

/// Returns the allocations of one call.
fn count<S>(client: &mut S, request: Request<Full<Bytes>>) -> usize
where
    S: Service<Request<Full<Bytes>>, Response = Response<Empty<Bytes>>, Error = Infallible>,
{
    reattempt_testing::allocations_of(|| {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(client.poll_ready(&mut cx).is_ready());
        let mut call = pin!(client.call(request));
        let mut polls = 0;
        while black_box(call.as_mut().poll(&mut cx)).is_pending() {
            polls += 1;
            assert!(polls < 10, "it waits for something else");
        }
    })
}

fn get() -> Request<Full<Bytes>> {
    let body = Full::from("hello");
    match Request::get("http://one.example/path").header("accept", "*/*").body(body) {
        Ok(request) => request,
        Err(error) => panic!("{error}"),
    }
}

#[tokio::test(start_paused = true)]
async fn quick_call_allocates_only_what_is_kept() {
    for polls in [0, 3] {
        let server = Server { polls, clones: &CLONES };
        let mut retried = Retry::new(RetryPolicy::http(), server.clone());
        // The first call creates the thread's spare buffer.
        count(&mut retried, get());
        let kept = count(&mut retried, get());
        let policy = HedgePolicy::http().delay(Duration::from_secs(1));
        let mut hedged = Hedge::new(policy, server.clone());
        let clones = CLONES.load(Ordering::SeqCst);
        // The first call creates the thread's own timer state.
        count(&mut hedged, get());
        assert_eq!(count(&mut hedged, get()), kept, "answered at poll {polls}");
        assert_eq!(CLONES.load(Ordering::SeqCst), clones, "and clones no service");
    }
}
