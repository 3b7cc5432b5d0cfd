//! Tests of one pace for clones, layers, tasks and threads.

use std::convert::Infallible;
use std::error::Error;
use std::fmt::Debug;
use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::task::Poll;
use std::thread;
use std::time::Duration;

use futures_util::future::join_all;
use reattempt::guard::{GuardLayer, Pace};
use reattempt_core::{Failure, FailureKind, Verdict};
use reattempt_schedule_responsive::Responsive;
use tokio::sync::Barrier;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::support::{Server, answer, call, ms, pace, request};

// trap 10
#[tokio::test(start_paused = true)]
async fn clones_and_layers_share_given_pace() {
    let refusing = Server::statuses([429]);
    let pace = pace();
    let layer = GuardLayer::http(Pace::new(pace.clone()));
    let mut one = layer.layer(refusing.watch());
    let mut clone = one.clone();
    let mut other = layer.clone().layer(refusing.watch());
    let mut of_the_other_layer = GuardLayer::http(Pace::new(pace)).layer(refusing.watch());
    call(&mut one).await.unwrap();
    call(&mut clone).await.unwrap();
    call(&mut other).await.unwrap();
    call(&mut of_the_other_layer).await.unwrap();
    assert_eq!(refusing.arrivals(), [0, 100, 300, 700].map(ms));
    assert_eq!(one.guard().responsive().metrics().invocations, 4);

    let mut separate = GuardLayer::http(Pace::new(super::support::pace())).layer(refusing.watch());
    call(&mut separate).await.unwrap();
    assert_eq!(refusing.arrivals()[4], ms(700), "another pace has seen no refusal");
}

#[tokio::test(start_paused = true)]
async fn twenty_refusals_at_once_move_it_once() {
    // Responds when all twenty have arrived.
    let pace = pace();
    let all = Arc::new(Barrier::new(20));
    let server = service_fn(move |_: http::Request<_>| {
        let all = Arc::clone(&all);
        async move {
            all.wait().await;
            Ok::<_, Infallible>(answer(429))
        }
    });
    let client = GuardLayer::http(Pace::new(pace.clone())).layer(server);
    for round in 0..4 {
        join_all((0..20).map(|_| client.clone().oneshot(request()))).await;
        assert_eq!(pace.interval(), ms(100 << round));
        assert_eq!(pace.metrics().times_up, round + 1);
    }
    let metrics = pace.metrics();
    assert_eq!((metrics.invocations, metrics.times_slept), (80, 60));
    // Each of the twenty turns is one interval after the previous one.
    assert_eq!(metrics.total_slept, ms(20 * 21 / 2 * (100 + 200 + 400)));
}

#[tokio::test(start_paused = true)]
async fn call_waiting_through_a_move_follows_it() {
    // Two calls wait from the same time on. The first refusal moves the interval, and the second call's turn. That call
    // is sent after the move, so its refusal also counts.
    let server = Server::statuses([429]);
    let pace = pace();
    let mut client = GuardLayer::http(Pace::new(pace.clone())).layer(server.watch());
    call(&mut client).await.unwrap();
    let first = client.clone().oneshot(request());
    let second = client.clone().oneshot(request());
    let (first, second) = tokio::join!(first, second);
    assert!(first.unwrap().status() == 429 && second.unwrap().status() == 429);
    assert_eq!(server.arrivals(), [0, 100, 300].map(ms));
    assert_eq!(pace.interval(), ms(400));
}

/// Each thread has its own runtime, because a paused clock has only one thread.
#[test]
fn no_count_is_lost_between_threads() {
    const THREADS: u64 = 16;
    const CALLS: u64 = 500;
    let pace = Responsive::new().initial(ms(1)).max(ms(3));
    let classify = |outcome: Result<&u64, &(dyn Error + 'static)>| match outcome {
        Ok(number) if number % 3 == 0 => Verdict::NotProcessed(Failure::new(FailureKind::Throttled)),
        _ => Verdict::Success,
    };
    // The threads' clocks are far apart, so a turn may come long after a call's time.
    let patient = Pace::new(pace.clone()).queue(1024, Duration::MAX);
    let layer = GuardLayer::classified(classify, patient);
    let client = layer.layer(service_fn(|number: u64| async move { Ok::<_, Infallible>(number) }));
    let waited: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let mut client = client.clone();
                scope.spawn(move || paused().block_on(waits(&mut client, thread..thread + CALLS)))
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    let metrics = pace.metrics();
    assert_eq!((metrics.invocations, metrics.times_slept), (THREADS * CALLS, waited));
    assert!(waited > 0 && metrics.total_slept > ms(0), "{metrics:?}");
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// Makes these calls one by one. Returns how many had to wait.
async fn waits<S>(client: &mut S, numbers: std::ops::Range<u64>) -> u64
where
    S: Service<u64, Response = u64, Error: Debug>,
{
    let mut waited = 0;
    for number in numbers {
        let mut answer = Box::pin(client.ready().await.unwrap().call(number));
        match poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(first) => drop(first.unwrap()),
            Poll::Pending => {
                waited += 1;
                answer.await.unwrap();
            }
        }
    }
    waited
}
