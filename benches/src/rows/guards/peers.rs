//! The peers of guards, each at its best configuration for the same job.

use std::convert::Infallible;
use std::future::ready;
use std::hint::black_box;
use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use failsafe::backoff::{Constant, EqualJittered};
use failsafe::failure_policy::{ConsecutiveFailures, OrElse, SuccessRateOverTimeWindow, consecutive_failures};
use failsafe::{Config, StateMachine};
use governor::{Quota, RateLimiter};
use http::{Request, Response};
use reattempt::guard::contract::{Admit, Arrival, End, Guard, Health};
use recloser::Recloser;
use seatbelt::breaker::Breaker;
use seatbelt::{RecoveryInfo, ResilienceContext};
use tick::Clock;
use tokio::time::Instant;
use tower::limit::{ConcurrencyLimit, RateLimit, rate::Rate};
use tower::{Layer, Service, service_fn};
use tower_acc::{ConcurrencyLimitLayer, Vegas};
use tower_resilience_adaptive::{AdaptiveLimiterLayer, Vegas as ResilienceVegas};
use tower_resilience_bulkhead::BulkheadLayer;
use tower_resilience_circuitbreaker::CircuitBreakerLayer;
use tower_resilience_ratelimiter::RateLimiterLayer;

use super::super::once::with_clock;
use super::{Work, awaited, opened, repeat, running};
use crate::contenders::least_guard::{Failed, Latest, LeastGuard};
use crate::contenders::least_guards::{LeastBreaker, LeastLimit};
use crate::inner::{Answer, Answers};
use crate::requests::{Body, fresh};

const HOUR: Duration = Duration::from_secs(3600);
const SECOND: Duration = Duration::from_secs(1);

/// Counts the last 100 calls; it has no window of time.
pub(super) fn recloser() -> Recloser {
    Recloser::custom().error_rate(0.5).build()
}

pub(super) fn open_recloser() -> Recloser {
    let recloser = Recloser::custom().error_rate(0.5).closed_len(1).open_wait(HOUR).build();
    for _ in 0..2 {
        drop(recloser.call(|| Err::<(), ()>(())));
    }
    recloser
}

#[inline]
pub(super) fn call_recloser(recloser: &Recloser) {
    assert!(recloser.call(|| black_box(Ok::<(), ()>(()))).is_ok());
}

pub(super) fn by_recloser(recloser: Recloser) -> Work {
    repeat(move || call_recloser(&recloser))
}

pub(super) fn refused_by_recloser(recloser: Recloser) -> Work {
    repeat(move || assert!(recloser.call(|| black_box(Ok::<(), ()>(()))).is_err()))
}

type Policy = OrElse<SuccessRateOverTimeWindow<EqualJittered>, ConsecutiveFailures<EqualJittered>>;

/// The default: a success rate over a window, or failures in a row.
pub(super) fn failsafe() -> StateMachine<Policy, ()> {
    Config::new().build()
}

pub(super) fn open_failsafe() -> StateMachine<ConsecutiveFailures<Constant>, ()> {
    let policy = consecutive_failures(1, failsafe::backoff::constant(HOUR));
    let breaker = Config::new().failure_policy(policy).build();
    breaker.on_error();
    breaker
}

#[inline]
pub(super) fn call_failsafe(breaker: &StateMachine<Policy, ()>) {
    assert!(breaker.is_call_permitted());
    breaker.on_success();
}

pub(super) fn by_failsafe(breaker: StateMachine<Policy, ()>) -> Work {
    repeat(move || call_failsafe(&breaker))
}

pub(super) fn refused_by_failsafe(breaker: StateMachine<ConsecutiveFailures<Constant>, ()>) -> Work {
    repeat(move || assert!(!breaker.is_call_permitted()))
}

pub(super) fn by_governor() -> Work {
    let limiter = RateLimiter::direct(Quota::per_second(NonZeroU32::MAX));
    repeat(move || assert!(limiter.check().is_ok()))
}

pub(super) fn resilience_breaker() -> Work {
    let layer = CircuitBreakerLayer::builder()
        .failure_rate_threshold(0.5)
        .sliding_window_size(100)
        .minimum_number_of_calls(20)
        .build()
        .unwrap();
    awaited(layer.layer(Answers), fresh)
}

pub(super) fn seatbelt() -> Work {
    with_clock(running(), |runtime| {
        let clock = runtime.block_on(async { Clock::new_tokio() });
        let context = ResilienceContext::<Request<Body>, Result<Answer, Infallible>>::new(&clock);
        let layer = Breaker::layer("breaker", &context)
            .failure_threshold(0.5)
            .min_throughput(20)
            .sampling_duration(Duration::from_secs(60))
            .recovery_with(|outcome: &Result<Answer, Infallible>, _| match outcome {
                Ok(answer) if answer.status().is_server_error() => RecoveryInfo::retry(),
                _ => RecoveryInfo::never(),
            })
            .rejected_input(|_, _| Ok(Answer::default()));
        awaited(Layer::layer(&layer, Answers), fresh)
    })
}

pub(super) fn tower_rate() -> Work {
    // It makes its timer at once, which needs a runtime. The timer is never polled.
    let runtime = running();
    let _entered = runtime.enter();
    awaited(RateLimit::new(Answers, Rate::new(1_000_000_000, SECOND)), fresh)
}

pub(super) fn resilience_rate() -> Work {
    let layer = RateLimiterLayer::builder().limit_for_period(1_000_000_000).refresh_period(SECOND).build().unwrap();
    awaited(layer.layer(Answers), fresh)
}

pub(super) fn tower_concurrency() -> Work {
    awaited(ConcurrencyLimit::new(Answers, 64), fresh)
}

pub(super) fn resilience_bulkhead() -> Work {
    let layer = BulkheadLayer::builder().max_concurrent_calls(64).reject_when_full().build();
    awaited(layer.unwrap().layer(Answers), fresh)
}

pub(super) fn tower_acc() -> Work {
    awaited(ConcurrencyLimitLayer::new(Vegas::default()).layer(Answers), fresh)
}

pub(super) fn resilience_adaptive() -> Work {
    let vegas = ResilienceVegas::builder().build().unwrap();
    awaited(AdaptiveLimiterLayer::new(vegas).layer(Answers), fresh)
}

/// Does half of the operations on each of two threads.
pub(super) fn on_two_threads<B: Send + Sync + 'static>(shared: B, operation: fn(&B)) -> Work {
    let shared = Arc::new(shared);
    Box::new(move |operations| {
        thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| (0..operations / 2).for_each(|_| operation(black_box(&shared))));
            }
        });
    })
}

/// Checks that the least layer holds its place to the end of the body, refuses without a place and after the deadline,
/// and loses no place.
pub(super) fn check_least() {
    let serves = service_fn(|_| ready(Ok::<_, Infallible>(Response::new(fresh().into_body()))));
    let client = LeastGuard::new(serves, 1, true);
    let call = |request| pin!(client.clone().call(request)).poll(&mut Context::from_waker(Waker::noop()));
    let held = call(fresh());
    assert!(matches!(held, Poll::Ready(Ok(_))) && client.in_flight() == 1);
    assert!(matches!(call(fresh()), Poll::Ready(Err(Failed::Refused))));
    drop(held);
    let mut late = fresh();
    late.extensions_mut().insert(Latest(Instant::now()));
    assert!(matches!(call(late), Poll::Ready(Err(Failed::Late))));
    assert!(call(fresh()).is_ready() && client.in_flight() == 0);
}

/// Checks that the least breaker opens, admits one probe and closes, and that the least limit mints no token too many.
pub(super) fn check_least_guards() {
    let (start, after) = (Duration::from_secs(100), |seconds: u64| Duration::from_secs(100 + seconds));
    let breaker = opened(LeastBreaker::new(), 20);
    let at = |now| breaker.admit(&Arrival::new("", now));
    let Admit::Refused(refused) = at(start) else { panic!("it is open") };
    assert_eq!(refused.wait(), Some(Duration::from_secs(30)));
    let Admit::Admitted(probe) = at(after(30)) else { panic!("it is half-open") };
    assert!(matches!(at(after(31)), Admit::Refused(_)), "one probe at a time");
    breaker.end_ticket(probe, &End::judged(Health::Served, SECOND), after(32));
    let served = End::judged(Health::Served, SECOND);
    for second in 33..93 {
        let Admit::Admitted(call) = at(after(second)) else { panic!("it is closed") };
        breaker.end_ticket(call, &served, after(second));
    }
    assert!((54..=60).contains(&breaker.calls(after(92))), "the window is 60 s long");

    let limit = LeastLimit::new(10, 1);
    assert!(limit.allow(start) && !limit.allow(start + Duration::from_millis(99)));
    assert!(limit.allow(start + Duration::from_millis(100)) && !limit.allow(start));
}
