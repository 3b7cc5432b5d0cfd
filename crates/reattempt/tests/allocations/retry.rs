//! Costs of calls that succeed at the first attempt, or at the second without a delay: allocations and the size of the
//! future, without a runtime.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::pin::pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CACHE_CONTROL, USER_AGENT, VIA};
use http::{HeaderValue, Request, Response, StatusCode};
use http_body::Body;
use http_body_util::{Empty, Full};
use reattempt::{CallOptions, Deadline, Retry, RetryPolicy};
use reattempt_replay::SavedHead;
use reattempt_schedule_fixed::Constant;
use reattempt_testing::allocations_of;
use tokio::runtime::Builder;
use tower::{BoxError, Service};

const SECOND: Duration = Duration::from_secs(1);

/// A server that reads the request's body to its end and responds at once. It allocates nothing, and cloning it panics.
struct Instant;

/// The number of calls to refuse.
static REFUSALS: AtomicUsize = AtomicUsize::new(0);

impl Clone for Instant {
    fn clone(&self) -> Self {
        assert!(MAY_CLONE.load(Ordering::SeqCst) > 0, "a call that needs no retry clones nothing");
        Instant
    }
}

static MAY_CLONE: AtomicUsize = AtomicUsize::new(1);

impl<B> Service<Request<B>> for Instant
where
    B: Body<Data = Bytes>,
{
    type Response = Response<Empty<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let mut body = pin!(request.into_body());
        while !body.is_end_stream() {
            let Poll::Ready(frame) = body.as_mut().poll_frame(&mut Context::from_waker(Waker::noop())) else {
                panic!("the bodies of this test are there at once");
            };
            let Some(Ok(_)) = frame else { break };
        }
        let mut response = Response::new(Empty::new());
        let refusals = REFUSALS.load(Ordering::SeqCst);
        if refusals > 0 {
            REFUSALS.store(refusals - 1, Ordering::SeqCst);
            *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        }
        ready(Ok(response))
    }
}

/// Returns the allocations of one call without those of the request itself. The call is polled without a runtime.
fn call<S, B>(service: &mut S, request: Request<B>) -> usize
where
    S: Service<Request<B>, Response = Response<Empty<Bytes>>, Error: Into<BoxError>>,
{
    allocations_of(|| {
        let mut cx = Context::from_waker(Waker::noop());
        assert!(matches!(service.poll_ready(&mut cx), Poll::Ready(Ok(()))));
        let mut call = pin!(service.call(request));
        match call.as_mut().poll(&mut cx) {
            Poll::Ready(Ok(response)) => assert_eq!(response.status(), 200),
            Poll::Ready(Err(error)) => panic!("{}", error.into()),
            Poll::Pending => panic!("the service answers at once"),
        }
    })
}

/// Returns a request as clients send it: an address, and headers, one of which has a unique value.
fn request<B>(method: &str, body: B) -> Request<B> {
    let mut request = Request::builder().method(method).uri("http://one.example/a?b=c").body(body).unwrap();
    for name in [ACCEPT, ACCEPT_ENCODING, CACHE_CONTROL, USER_AGENT, VIA] {
        request.headers_mut().insert(name, HeaderValue::from_static("static"));
    }
    let secret = format!("Bearer {}", "x".repeat(40));
    request.headers_mut().insert(AUTHORIZATION, secret.parse().unwrap());
    request
}

/// Returns the cost of saving the head for a retry.
fn of_head<B>(request: Request<B>) -> usize {
    allocations_of(|| SavedHead::new(&request))
}

#[test]
fn success_at_once_costs_head_and_body() {
    let mut bare = Instant;
    let mut plain = Retry::new(RetryPolicy::http().max_elapsed(None), Instant);
    let mut usual = Retry::new(RetryPolicy::http(), Instant);
    let mut timed = Retry::new(RetryPolicy::http().attempt_timeout(SECOND), Instant);
    let mut never = Retry::new(RetryPolicy::http().max_attempts(1), Instant);
    let mut straight = Retry::new(RetryPolicy::http().protocol(|http| http.redirects_below(false)), Instant);
    MAY_CLONE.store(0, Ordering::SeqCst);
    let empty = || Empty::<Bytes>::new();
    let full = || Full::from("hello");

    // The service of this test costs nothing, so everything that is counted is ours.
    assert_eq!((call(&mut bare, request("GET", empty())), call(&mut bare, request("PUT", full()))), (0, 0));

    // The head: a thread's first one creates the buffer, which later ones use. With a credential, also the list of
    // shared values and their owners.
    assert_eq!(of_head(request("GET", empty())), 1);
    let head = of_head(request("GET", empty()));
    assert_eq!(head, 0);
    assert_eq!(of_head(Request::get("http://one.example/").body(empty()).unwrap()), head);
    let secret = || {
        let mut request = request("GET", empty());
        request.headers_mut().get_mut(AUTHORIZATION).unwrap().set_sensitive(true);
        request
    };
    assert_eq!(of_head(secret()), 2);
    assert_eq!(call(&mut usual, secret()), 2);

    // Without a body, only the head.
    for _ in 0..3 {
        assert_eq!(call(&mut plain, request("GET", empty())), head);
        assert_eq!(call(&mut usual, request("GET", empty())), head);
        assert_eq!(call(&mut timed, request("GET", empty())), head);
    }
    // For an empty POST, inspections of its body are recorded. A thread's first one creates the mark, which later ones
    // use.
    assert_eq!(call(&mut usual, request("POST", empty())), head + 1);
    for _ in 0..3 {
        assert_eq!(call(&mut usual, request("POST", empty())), head);
    }
    // With a body: the state that its readers share. A POST is kept as well, for a 429, and the polls of its body are
    // recorded with the mark of an empty one.
    for method in ["PUT", "POST"] {
        assert_eq!(call(&mut plain, request(method, full())), head + 1);
        assert_eq!(call(&mut usual, request(method, full())), head + 1);
        assert_eq!(call(&mut timed, request(method, full())), head + 1);
    }
    assert_eq!(call(&mut straight, request("POST", full())), head + 1);

    // A request that cannot be retried is not kept.
    assert_eq!(call(&mut never, request("PUT", full())), 0);
    let with = |options: CallOptions| {
        let mut request = request("PUT", full());
        request.extensions_mut().insert(options);
        request
    };
    assert_eq!(call(&mut usual, with(CallOptions::new().never_retry())), 0);
    assert_eq!(call(&mut usual, with(CallOptions::new().max_attempts(1))), 0);
    assert_eq!(call(&mut usual, request("CONNECT", full())), 0);

    // Extensions are cloned with the head; a deadline among them costs no more than that.
    let with_deadline = || {
        let mut request = request("PUT", full());
        request.extensions_mut().insert(Deadline::after(Duration::from_secs(5)));
        request
    };
    let head = of_head(with_deadline());
    assert_eq!(call(&mut usual, with_deadline()), head + 1);
    assert_eq!(call(&mut timed, with_deadline()), head + 1);

    // The size of the future without the attempt inside it.
    let future = usual.call(request("GET", empty()));
    let attempt = size_of::<Ready<Result<Response<Empty<Bytes>>, Infallible>>>();
    let ours = size_of_val(&future) - attempt;
    assert!(ours <= 424, "a call takes {ours} bytes beside its attempt");
    drop(future);

    // Cloning a client costs as much as cloning the inner service.
    MAY_CLONE.store(1, Ordering::SeqCst);
    assert_eq!(allocations_of(|| usual.clone()), 0);

    // A retry: its box and its destination. The owners of the saved head's buffer, and the two parts of a map. Three
    // each for the attempt's number in the request's extensions, and for the report in the response's. The very first
    // retry also creates its destination's bucket, and the second one the thread's map of these names.
    let mut retried = Retry::new(RetryPolicy::http().backoff(Constant::immediate()), Instant);
    let mut refused_once = || {
        REFUSALS.store(1, Ordering::SeqCst);
        call(&mut retried, request("GET", empty()))
    };
    refused_once();
    refused_once();
    assert_eq!(refused_once(), 2 + 3 + 6);

    // A waiting call: its box and its destination. The next request is created when it is sent.
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let _entered = runtime.enter();
    let mut patient = Retry::new(RetryPolicy::http().backoff(Constant::new(SECOND)), Instant);
    let mut cx = Context::from_waker(Waker::noop());
    let mut begin_to_wait = || {
        REFUSALS.store(1, Ordering::SeqCst);
        let mut call = pin!(patient.call(request("GET", empty())));
        allocations_of(|| assert!(call.as_mut().poll(&mut cx).is_pending()))
    };
    begin_to_wait();
    assert_eq!(begin_to_wait(), 2);
}
