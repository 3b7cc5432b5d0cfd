//! Tests of turns: one interval between calls, whichever callers make them.

use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use futures_util::future::join_all;
use http::Request;
use reattempt::guard::{GuardLayer, Pace};
use reattempt_core::Random;
use reattempt_schedule_responsive::Responsive;
use reattempt_testing::Seeded;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt, service_fn};

use super::support::{Server, answer, begin, call, ms, pace, request, secs};

/// Polls a future once, so that it enters the queue.
async fn enter<F: Future + Unpin>(call: &mut F) {
    poll_fn(|cx| {
        assert!(std::pin::Pin::new(&mut *call).poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn twenty_callers_take_turns() {
    let server = Server::statuses([429, 503]);
    let client = GuardLayer::http(Pace::new(pace())).layer(server.watch());
    call(&mut client.clone()).await.unwrap();
    join_all((0..20).map(|_| client.clone().oneshot(request()))).await;
    let gaps: Vec<_> = server.arrivals().windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [ms(100); 20]);
}

#[tokio::test(start_paused = true)]
async fn a_dropped_waiter_gives_its_turn_back() {
    let server = Server::statuses([429, 503]);
    let mut client = GuardLayer::http(Pace::new(pace())).layer(server.watch());
    call(&mut client).await.unwrap();
    let mut first = Box::pin(begin(&mut client).await);
    let mut second = Box::pin(begin(&mut client).await);
    let mut third = Box::pin(begin(&mut client).await);
    enter(&mut first).await;
    enter(&mut second).await;
    enter(&mut third).await;
    drop(first);
    second.await.unwrap();
    third.await.unwrap();
    assert_eq!(server.arrivals(), [0, 100, 200].map(ms));
}

/// Futures that are held and not polled delay those behind them, but never block them.
#[tokio::test(start_paused = true)]
async fn an_unpolled_waiter_does_not_block_others() {
    let server = Server::statuses([429, 503]);
    let mut client = GuardLayer::http(Pace::new(pace())).layer(server.watch());
    call(&mut client).await.unwrap();
    let mut waiting = Vec::new();
    for _ in 0..5 {
        let mut call = Box::pin(begin(&mut client).await);
        enter(&mut call).await;
        waiting.push(call);
    }
    // The last one first.
    for call in waiting.into_iter().rev() {
        tokio::time::timeout(secs(60), call).await.expect("it is not blocked").unwrap();
    }
    assert_eq!(server.arrivals().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn a_shorter_interval_reaches_the_waiting() {
    let server = Server::statuses([429, 200]);
    let pace = pace().threshold(1);
    let mut client = GuardLayer::http(Pace::new(pace.clone())).layer(server.watch());
    call(&mut client).await.unwrap();
    let calls: Vec<_> = (0..10).map(|_| client.clone().oneshot(request())).collect();
    join_all(calls).await;
    // The first of them succeeds, and the interval is 0.
    assert_eq!(server.arrivals()[1..], [ms(100); 10]);
}

/// Returns a token bucket of one second's calls, refilled at this rate, with responses after `latency`.
fn limited(
    capacity: f64,
    latency: Duration,
    served: Arc<Mutex<Vec<Instant>>>,
) -> impl Service<
    Request<http_body_util::Empty<bytes::Bytes>>,
    Response = super::support::Answer,
    Error = Infallible,
    Future: Send,
> + Clone
+ Send {
    let bucket = Arc::new(Mutex::new((capacity, Instant::now())));
    service_fn(move |_| {
        let (bucket, served) = (Arc::clone(&bucket), Arc::clone(&served));
        async move {
            let accepted = {
                let (tokens, filled) = &mut *bucket.lock().unwrap();
                let now = Instant::now();
                *tokens += (now - *filled).as_secs_f64() * capacity;
                *tokens = tokens.min(capacity);
                *filled = now;
                let accepted = *tokens >= 1.0;
                if accepted {
                    *tokens -= 1.0;
                    served.lock().unwrap().push(now);
                }
                accepted
            };
            tokio::time::sleep(latency).await;
            Ok(answer(if accepted { 200 } else { 429 }))
        }
    })
}

/// Returns the calls per second that are served under an open load at random times, measured after `settled` for as
/// long again.
async fn served_of(capacity: f64, load: f64, settled: Duration) -> f64 {
    let served = Arc::default();
    let service = limited(capacity, ms(5), Arc::clone(&served));
    let layer = GuardLayer::http(Pace::new(Responsive::new()).seed(1));
    let client = layer.layer(service);
    let began = Instant::now();
    let (mut random, mut at) = (Seeded::new(1), began);
    while at < began + 2 * settled {
        tokio::time::sleep_until(at).await;
        tokio::spawn(client.clone().oneshot(request()));
        let share = ((random.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64;
        at += Duration::from_secs_f64(-share.ln() / load);
    }
    let served = served.lock().unwrap();
    let counted = served.iter().filter(|at| **at >= began + settled).count();
    counted as f64 / settled.as_secs_f64()
}

// trap 37
#[tokio::test(start_paused = true)]
async fn open_load_above_capacity_is_served() {
    let minute = secs(60);
    let slow = [(1.0, 1.2, minute), (1.0, 2.0, minute)];
    let fast = [(50.0, 60.0, minute), (50.0, 100.0, minute), (5_000.0, 6_000.0, secs(5))];
    for (capacity, load, settled) in slow.into_iter().chain(fast) {
        let rate = served_of(capacity, load, settled).await;
        assert!((0.8..=1.2).contains(&(rate / capacity)), "{rate} of {capacity} at {load}");
    }
}
