//! The standard stack of the peers: total time, retries, circuit breaker, bulkhead and attempt timeout.
//!
//! The mixed stack has the best part of each: tower's timeouts, its `Retry` by hand with a bucket, and its limit
//! behind `LoadShed`, around seatbelt's breaker. It lacks what no part of it has: a bucket, a breaker and places for
//! each destination, places that are held to the end of the body, server hints, replayed bodies, reports, and a
//! deadline that the attempts know. It also repeats every method, and retries refusals of its own breaker and limit.
//!
//! tower's timeout takes the place of tower-resilience's time limiter, which is not among the dependencies. seatbelt
//! has no bulkhead, so tower-resilience's is in its stack. tower's own does not fit: seatbelt's retry calls clones that
//! are not readied.

use std::convert::Infallible;
use std::fmt;
use std::pin::Pin;
use std::task::{self, Poll, Waker};
use std::time::Duration;

use http::{Request, StatusCode};
use seatbelt::breaker::Breaker;
use seatbelt::retry::Retry;
use seatbelt::{RecoveryInfo, ResilienceContext};
use tick::Clock;
use tokio::runtime::Runtime;
use tower::limit::ConcurrencyLimit;
use tower::load_shed::LoadShed;
use tower::timeout::Timeout;
use tower::{BoxError, Layer, Service, ServiceExt};
use tower_resilience_bulkhead::{Bulkhead, BulkheadLayer, BulkheadServiceError};
use tower_resilience_circuitbreaker::{CircuitBreakerError, CircuitBreakerLayer};
use tower_resilience_retry::ExponentialRandomBackoff;

use super::super::once::with_clock;
use super::{Work, awaited, running};
use crate::contenders::{BASE, Bucket, ByHand, CAP, resilience_with};
use crate::inner::{Answer, Answers, Fails, FailsFirst, Holds};
use crate::requests::{Body, fresh};

const TOTAL_TIME: Duration = Duration::from_secs(30);
const ATTEMPT_TIME: Duration = Duration::from_secs(10);
const PLACES: usize = 64;

pub(super) fn resilience_stack() -> Work {
    awaited(resilience(Answers, BASE), fresh)
}

pub(super) fn seatbelt_stack() -> Work {
    with_clock(running(), |runtime| awaited(seatbelt(Answers, BASE, runtime), fresh))
}

pub(super) fn mixed_stack() -> Work {
    with_clock(running(), |runtime| awaited(mixed(Answers, BASE, runtime), fresh))
}

/// The inner client of a stack.
trait Client:
    Service<Request<Body>, Response = Answer, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static
{
}

impl<S> Client for S where
    S: Service<Request<Body>, Response = Answer, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static
{
}

fn bulkhead<S>(inner: S) -> Bulkhead<S> {
    let layer = BulkheadLayer::builder().max_concurrent_calls(PLACES).reject_when_full().build();
    layer.unwrap().layer(inner)
}

type Failed = BulkheadServiceError<BoxError>;

fn resilience(inner: impl Client, base: Duration) -> impl Service<Request<Body>, Response = Answer, Error = BoxError> {
    let failed = |outcome: &Result<Answer, Failed>| match outcome {
        Ok(answer) => answer.status().is_server_error(),
        Err(error) => error.is_inner(),
    };
    let breaker = CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.5)
        .sliding_window_size(100)
        .minimum_number_of_calls(20)
        .failure_classifier(failed)
        .build()
        .unwrap();
    let backoff = ExponentialRandomBackoff::new(base, 1.0).unwrap().max_interval(CAP);
    let guarded = breaker.layer(bulkhead(Timeout::new(inner, ATTEMPT_TIME)));
    let retry = resilience_with::<_, CircuitBreakerError<Failed>>(backoff, 10.0);
    Timeout::new(retry.layer(guarded), TOTAL_TIME)
}

/// The context of seatbelt's parts.
type Context = ResilienceContext<Request<Body>, Result<Answer, BoxError>>;

fn context(runtime: &Runtime) -> Context {
    let clock = runtime.block_on(async { Clock::new_tokio() });
    Context::new(&clock)
}

fn recovery(outcome: &Result<Answer, BoxError>) -> RecoveryInfo {
    match outcome {
        Ok(answer) if !answer.status().is_server_error() => RecoveryInfo::never(),
        Err(error) if is_refusal(error) => RecoveryInfo::never(),
        _ => RecoveryInfo::retry(),
    }
}

/// Adds seatbelt's breaker.
fn breaker<S>(context: &Context, inner: S) -> Breaker<Request<Body>, Result<Answer, BoxError>, S> {
    let layer = Breaker::layer("breaker", context)
        .failure_threshold(0.5)
        .min_throughput(20)
        .sampling_duration(Duration::from_secs(60))
        .recovery_with(|outcome, _| recovery(outcome))
        .rejected_input_error(|_, _| Refused.into());
    Layer::layer(&layer, inner)
}

fn seatbelt<S: Client>(
    inner: S,
    base: Duration,
    runtime: &Runtime,
) -> impl Service<Request<Body>, Response = Answer, Error = BoxError> + use<S> {
    let context = context(runtime);
    let timeout =
        |name, time| seatbelt::timeout::Timeout::layer(name, &context).timeout_error(|_| Refused.into()).timeout(time);
    let retry = Retry::layer("retry", &context)
        .max_retry_attempts(2)
        .base_delay(base)
        .max_delay(CAP)
        .clone_input()
        .recovery_with(|outcome, _| recovery(outcome));
    let attempt = inner.map_err(|never| match never {});
    let attempt = Layer::layer(&timeout("attempt", ATTEMPT_TIME), attempt);
    let limited = bulkhead(attempt).map_err(BoxError::from);
    let retried = Layer::layer(&retry, breaker(&context, limited));
    Layer::layer(&timeout("total", TOTAL_TIME), retried)
}

fn mixed<S: Client>(
    inner: S,
    base: Duration,
    runtime: &Runtime,
) -> impl Service<Request<Body>, Response = Answer, Error = BoxError> + use<S> {
    let limited = LoadShed::new(ConcurrencyLimit::new(Timeout::new(inner, ATTEMPT_TIME), PLACES));
    let policy = ByHand::new(base, CAP, Bucket::default());
    let retried = tower::retry::Retry::new(policy, breaker(&context(runtime), limited));
    Timeout::new(retried, TOTAL_TIME)
}

fn is_refusal(error: &BoxError) -> bool {
    let by_bulkhead = error.downcast_ref().is_some_and(Failed::is_bulkhead);
    by_bulkhead || error.is::<Refused>()
}

/// The error of a call that seatbelt's breaker does not send.
#[derive(Debug)]
struct Refused;

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("refused")
    }
}

impl std::error::Error for Refused {}

/// Checks that the stacks retry, that their breakers open, and that their bulkheads refuse.
pub(super) fn check() {
    let runtime = running();
    let soon = Duration::from_millis(1);
    let fails_first = FailsFirst::default();
    check_retries(&runtime, &fails_first, resilience(fails_first.clone(), soon));
    let fails_first = FailsFirst::default();
    check_retries(&runtime, &fails_first, seatbelt(fails_first.clone(), soon, &runtime));
    let fails_first = FailsFirst::default();
    check_retries(&runtime, &fails_first, mixed(fails_first.clone(), soon, &runtime));
    check_breaker(&runtime, resilience(Fails, soon));
    check_breaker(&runtime, seatbelt(Fails, soon, &runtime));
    check_breaker(&runtime, mixed(Fails, soon, &runtime));
    check_bulkhead(&runtime, resilience(Holds, soon));
    check_bulkhead(&runtime, seatbelt(Holds, soon, &runtime));
    check_bulkhead(&runtime, mixed(Holds, soon, &runtime));
}

async fn send(
    stack: &mut impl Service<Request<Body>, Response = Answer, Error = BoxError>,
) -> Result<StatusCode, BoxError> {
    Ok(stack.ready().await?.call(fresh()).await?.status())
}

fn check_retries(
    runtime: &Runtime,
    inner: &FailsFirst,
    mut stack: impl Service<Request<Body>, Response = Answer, Error = BoxError>,
) {
    runtime.block_on(async { assert_eq!(send(&mut stack).await.unwrap(), StatusCode::OK) });
    assert_eq!(inner.calls(), 2, "a failure and a retry");
}

fn check_breaker(runtime: &Runtime, mut stack: impl Service<Request<Body>, Response = Answer, Error = BoxError>) {
    runtime.block_on(async {
        assert_eq!(send(&mut stack).await.unwrap(), StatusCode::SERVICE_UNAVAILABLE);
        // tower-resilience decides only when its window of 100 attempts is full.
        let mut refuses = false;
        for _ in 0..100 {
            refuses |= send(&mut stack).await.is_err();
        }
        assert!(refuses, "the breaker is open");
    });
}

fn check_bulkhead(runtime: &Runtime, mut stack: impl Service<Request<Body>, Response = Answer, Error = BoxError>) {
    runtime.block_on(async {
        let mut held = Vec::new();
        for _ in 0..PLACES {
            let mut call: Pin<Box<_>> = Box::pin(stack.ready().await.unwrap().call(fresh()));
            let polled = call.as_mut().poll(&mut task::Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Pending));
            held.push(call);
        }
        assert!(send(&mut stack).await.is_err(), "the bulkhead is full");
    });
}
