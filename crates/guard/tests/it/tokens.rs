//! Tests of waits for tokens outside a layer, under a paused clock.

use std::time::Duration;

use reattempt::guard::handle::RateLimitExt;
use reattempt::guard::handle::wait_for_tokens;
use reattempt::guard::{Limit, RateLimit, Reason, Refused};
use reattempt_testing_layers::calls::ms;
use tokio::time::{Instant, timeout};

const QUEUE: &str = "queue.example";

fn limit() -> RateLimit {
    RateLimit::new(Limit::per_second(10), 5)
}

#[tokio::test(start_paused = true)]
async fn tokens_are_waited_for_in_turn() {
    let (limit, start) = (limit(), Instant::now());
    let waits = [(5, 0), (2, 200), (3, 500)].map(|(n, at)| {
        let limit = limit.clone();
        tokio::spawn(async move {
            wait_for_tokens(&limit, QUEUE, n, Duration::MAX).await.unwrap();
            assert_eq!(start.elapsed(), ms(at));
        })
    });
    for wait in waits {
        wait.await.unwrap();
    }
    assert_eq!(limit.tokens(QUEUE), 0.0);
}

#[tokio::test(start_paused = true)]
async fn wait_that_cannot_end_takes_no_tokens() {
    let limit = limit();
    let refused = |n, longest| {
        let limit = limit.clone();
        async move { wait_for_tokens(&limit, QUEUE, n, longest).await.map_err(|r: Refused| r.reason()) }
    };
    assert_eq!(refused(6, Duration::MAX).await, Err(Reason::TooLarge));
    assert_eq!(refused(5, Duration::ZERO).await, Ok(()));
    assert_eq!(refused(2, ms(199)).await, Err(Reason::WaitTooLong));
    assert_eq!(refused(2, ms(200)).await, Ok(()));
    limit.set_limit(QUEUE, Limit::per_second(0)).unwrap();
    assert_eq!(refused(1, Duration::MAX).await, Err(Reason::WaitTooLong), "they never come");
}

#[tokio::test(start_paused = true)]
async fn dropped_wait_gives_its_tokens_back() {
    let limit = limit();
    wait_for_tokens(&limit, QUEUE, 5, Duration::MAX).await.unwrap();
    let wait = wait_for_tokens(&limit, QUEUE, 5, Duration::MAX);
    assert!(timeout(ms(100), wait).await.is_err());
    // A tenth of a second has added one token, and the five are back.
    assert_eq!(limit.tokens(QUEUE), 1.0);
}
