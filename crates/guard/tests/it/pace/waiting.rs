//! Tests of the times at which calls are sent.

use reattempt::guard::{GuardLayer, Pace};
use reattempt_schedule_responsive::Responsive;
use tokio::time::Instant;
use tower::Layer;

use super::support::{Answer, Server, answer, begin, call, ms, pace};

#[tokio::test(start_paused = true)]
async fn each_call_is_one_interval_after_the_last() {
    let server = Server::statuses([429, 429, 429, 200]);
    let pace = pace();
    let mut client = GuardLayer::http(Pace::new(pace.clone())).layer(server.watch());
    for expected in [100, 200, 400, 200, 200, 100, 100, 0, 0, 0, 0] {
        call(&mut client).await.unwrap();
        assert_eq!(pace.interval(), ms(expected));
    }
    let at = [0, 100, 300, 700, 900, 1100, 1200, 1300, 1300, 1300, 1300];
    assert_eq!(server.arrivals(), at.map(ms), "successes are paced, too");

    let metrics = client.guard().responsive().metrics();
    assert_eq!(metrics.invocations, 11);
    assert_eq!((metrics.times_up, metrics.times_down), (3, 3));
    assert_eq!((metrics.times_slept, metrics.total_slept), (7, ms(1300)));
}

#[tokio::test(start_paused = true)]
async fn rate_converges_to_what_service_takes() {
    let pace = Responsive::new().initial(ms(1)).randomisation(0.0);
    let pace = pace.down(0.6).threshold(5);
    let last = std::sync::Mutex::new(Instant::now());
    let server = Server::<Answer>::by(move |_| {
        let now = Instant::now();
        let since = now - std::mem::replace(&mut *last.lock().unwrap(), now);
        Ok(answer(if since > ms(60) { 200 } else { 429 }))
    });
    let mut client = GuardLayer::http(Pace::new(pace.clone())).layer(server.watch());
    for _ in 0..300 {
        call(&mut client).await.unwrap();
    }
    let arrivals = server.arrivals();
    let settled: Vec<_> = arrivals[20..].windows(2).map(|pair| pair[1] - pair[0]).collect();
    // A step up from just below, and a step down from just above; the timer rounds up.
    assert!(settled.iter().all(|gap| (ms(36)..=ms(91)).contains(gap)), "{settled:?}");
    let metrics = pace.metrics();
    assert!(metrics.times_up > 50 && metrics.times_down > 40, "{metrics:?}");
}

#[tokio::test(start_paused = true)]
async fn call_enters_queue_when_it_is_made() {
    let server = Server::statuses([429, 503]);
    let mut client = GuardLayer::http(Pace::new(pace())).layer(server.watch());
    call(&mut client).await.unwrap();
    let early = begin(&mut client).await;
    call(&mut client).await.unwrap();
    early.await.unwrap();
    // The second call has the second turn. The first one was not polled in time, and takes the next.
    assert_eq!(server.arrivals(), [0, 200, 300].map(ms));
}

#[tokio::test(start_paused = true)]
async fn a_call_whose_turn_is_due_does_not_wait() {
    let server = Server::statuses([429, 429, 200]);
    let pace = pace();
    let mut client = GuardLayer::http(Pace::new(pace.clone())).layer(server.watch());
    call(&mut client).await.unwrap();
    call(&mut client).await.unwrap();
    tokio::time::advance(ms(1000)).await;
    let (clones, waits) = (server.clones(), pace.metrics().times_slept);
    call(&mut client).await.unwrap();
    assert_eq!(server.arrivals(), [0, 100, 1100].map(ms));
    assert_eq!((server.clones(), pace.metrics().times_slept), (clones, waits));
}

#[tokio::test(start_paused = true)]
async fn longest_interval_is_waited_in_full() {
    let server = Server::statuses([429, 200]);
    let longest = std::time::Duration::from_secs(15 * 60);
    let pace = Responsive::new().initial(longest);
    let pace = Pace::new(pace).queue(1, longest);
    let mut client = GuardLayer::http(pace).layer(server.watch());
    call(&mut client).await.unwrap();
    call(&mut client).await.unwrap();
    assert_eq!(server.arrivals()[1], longest);
}

#[tokio::test(start_paused = true)]
async fn a_seed_makes_every_move_reproducible() {
    let moved = async |pace: Pace| {
        let mut client = GuardLayer::http(pace).layer(Server::statuses([429]));
        let mut intervals = Vec::new();
        for _ in 0..8 {
            call(&mut client).await.unwrap();
            intervals.push(client.guard().responsive().interval());
        }
        intervals
    };
    let pace = || Pace::new(Responsive::new());
    let first = moved(pace().seed(7)).await;
    assert_eq!(first, moved(pace().seed(7)).await);
    assert_ne!(first, moved(pace().seed(8)).await);
    assert_ne!(first, moved(pace()).await);
}
