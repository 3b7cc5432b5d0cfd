//! Tests of the times at which attempts are sent: the delays of schedule and server, and their limits.

use http::StatusCode;
use http_body_util::BodyExt;
use reattempt::{RetryBudget, RetryLayer, RetryPolicy};
use reattempt_core::{ScheduleExt, StopReason};
use reattempt_http::Hints;
use reattempt_schedule_fixed::{Constant, Linear};
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, Service, ServiceExt};

use crate::calls::support::{Act, Server, answer, get, ms, policy, report_of};

/// Returns a server that responds with a 503 that requests a delay, then with a 200.
fn asking(name: &'static str, value: &'static str) -> Server {
    Server::by(move |arrival, _| match arrival {
        1 => Act::from(503).header(name, value),
        _ => 200.into(),
    })
}

#[tokio::test(start_paused = true)]
async fn nothing_is_sent_before_the_delay_is_over() {
    let server = Server::statuses([503, 200]);
    let client = RetryLayer::new(policy()).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    assert_eq!(server.count(), 1);
    advance(ms(99)).await;
    assert_pending!(call.poll());
    assert_eq!(server.count(), 1, "a millisecond too soon");
    advance(ms(1)).await;
    assert!(call.is_woken());
    let response = assert_ready!(call.poll()).unwrap();
    assert_eq!((response.status(), server.count()), (StatusCode::OK, 2));
}

#[tokio::test(start_paused = true)]
async fn delay_is_schedules_to_millisecond() {
    let server = Server::statuses([503]);
    let schedule = Linear::new(ms(100)).step(ms(150));
    let client = RetryLayer::new(policy().backoff(schedule).max_attempts(5)).layer(server.clone());
    let response = client.oneshot(get()).await.unwrap();
    assert_eq!(response.status(), 503);
    assert_eq!(server.times(), [0, 100, 350, 750, 1300]);
}

#[tokio::test(start_paused = true)]
async fn a_delay_of_zero_is_none() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().backoff(Constant::immediate())).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    let response = assert_ready!(call.poll()).unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 3));
}

#[tokio::test(start_paused = true)]
async fn attempt_time_is_no_part_of_delay() {
    let server = Server::by(|_, _| Act::from(503).later(ms(250)));
    let client = RetryLayer::new(policy()).layer(server.clone());
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.times(), [0, 350, 700]);
}

#[tokio::test(start_paused = true)]
async fn three_attempts_in_all_and_none_more() {
    let server = Server::statuses([503]);
    let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 3);
    assert_eq!(report_of(&response).stop_reason(), StopReason::AttemptsExhausted);
}

#[tokio::test(start_paused = true)]
async fn one_attempt_or_none_means_never_to_retry() {
    for attempts in [0, 1] {
        let server = Server::statuses([503]);
        let client = RetryLayer::new(policy().max_attempts(attempts)).layer(server.clone());
        let response = client.oneshot(get()).await.unwrap();
        assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_schedule_that_ends_ends_the_call() {
    let server = Server::statuses([503]);
    let schedule = Constant::new(ms(10)).take(1);
    let client = RetryLayer::new(policy().backoff(schedule).max_attempts(9)).layer(server.clone());
    let response = client.oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 2);
    assert_eq!(report_of(&response).stop_reason(), StopReason::ScheduleEnded);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_jittered_up_to_a_tenth() {
    for seed in 0..50 {
        let server = asking("retry-after", "7");
        let client = RetryLayer::new(policy().seed(seed)).layer(server.clone());
        let response = client.oneshot(get()).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let second = server.times()[1];
        assert!((7000..=7701).contains(&second), "asked for 7 s, came after {second} ms");
    }
}

// trap 18
#[tokio::test(start_paused = true)]
async fn jitter_is_never_sooner_than_server_asked() {
    let seconds: Vec<_> = {
        let mut seconds = Vec::new();
        for seed in 0..200 {
            let server = asking("retry-after", "10");
            let client =
                RetryLayer::new(RetryPolicy::http().budget(RetryBudget::percent(10)).seed(seed)).layer(server.clone());
            client.oneshot(get()).await.unwrap();
            seconds.push(server.times()[1]);
        }
        seconds
    };
    assert!(seconds.iter().all(|&second| (10_000..=11_001).contains(&second)), "{seconds:?}");
    let (first, last) = (seconds.iter().min().unwrap(), seconds.iter().max().unwrap());
    assert!(last - first > 500, "and they do not all come at one moment: {first}..{last}");
}

#[tokio::test(start_paused = true)]
async fn delays_below_a_second_are_obeyed() {
    for name in ["retry-after-ms", "x-ms-retry-after-ms"] {
        let server = asking(name, "250");
        RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
        let second = server.times()[1];
        assert!((250..=276).contains(&second), "{name}: {second}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_hint_that_is_not_read_changes_nothing() {
    let server = asking("retry-after", "7");
    let client = RetryLayer::new(policy().protocol(|http| http.hints(Hints::none()))).layer(server.clone());
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.times(), [0, 100]);
}

#[tokio::test(start_paused = true)]
async fn schedule_counts_server_delayed_retry() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("retry-after-ms", "1"),
        _ => 503.into(),
    });
    let schedule = Linear::new(ms(100)).step(ms(1000));
    RetryLayer::new(policy().backoff(schedule)).layer(server.clone()).oneshot(get()).await.unwrap();
    let times = server.times();
    assert_eq!(times[2] - times[1], 1100, "the second retry has the schedule's second delay");
}

#[tokio::test(start_paused = true)]
async fn delay_past_elapsed_time_is_not_begun() {
    let server = Server::by(|_, _| Act::Answer(answer(503, "what it said")).later(ms(30)));
    let client = RetryLayer::new(policy().max_elapsed(ms(229))).layer(server.clone());
    let began = Instant::now();
    let response = client.oneshot(get()).await.unwrap();
    // 30 for the first attempt, 100 for the delay, 30 for the second; another delay of 100 would make 260.
    assert_eq!(server.times(), [0, 130]);
    assert_eq!(began.elapsed().as_millis(), 160, "no sleeping first and giving up after");
    assert_eq!(report_of(&response).stop_reason(), StopReason::ElapsedExhausted);
    assert_eq!(response.into_body().collect().await.unwrap().to_bytes(), "what it said");
}

/// Makes the client ready for this type of request.
async fn readied<'a, S: Service<R>, R>(client: &'a mut S, _: &R) -> &'a mut S {
    client.ready().await.unwrap_or_else(|_| panic!("not ready"))
}

#[tokio::test(start_paused = true)]
async fn elapsed_time_counts_from_first_poll() {
    let server = Server::by(|_, _| Act::Answer(answer(503, "")).later(ms(30)));
    let mut client = RetryLayer::new(policy().max_elapsed(ms(229))).layer(server.clone());
    let request = get();
    let call = readied(&mut client, &request).await.call(request);
    advance(ms(10_000)).await;
    assert_eq!(report_of(&call.await.unwrap()).stop_reason(), StopReason::ElapsedExhausted);
    assert_eq!(server.times().len(), 2, "neither none, for the time before, nor as many as one likes");
}

#[tokio::test(start_paused = true)]
async fn delay_that_fits_elapsed_is_waited() {
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().max_elapsed(ms(100)).max_attempts(9)).layer(server.clone());
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.times(), [0, 100]);
}

#[tokio::test(start_paused = true)]
async fn elapsed_none_means_no_limit() {
    let server = Server::statuses([503]);
    let schedule = Constant::new(ms(3_600_000));
    let client = RetryLayer::new(policy().backoff(schedule).max_elapsed(None)).layer(server.clone());
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.times(), [0, 3_600_000, 7_200_000]);
}

#[tokio::test(start_paused = true)]
async fn server_delay_past_limit_ends_call() {
    let server = asking("retry-after", "61");
    let client = RetryLayer::new(policy().max_elapsed(None)).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    let response = assert_ready!(call.poll()).unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    assert_eq!(report_of(&response).stop_reason(), StopReason::ServerDelayTooLong);
}

#[tokio::test(start_paused = true)]
async fn the_cap_on_server_delays_can_be_raised() {
    let server = asking("retry-after", "61");
    let policy = policy().max_elapsed(None).max_server_delay(ms(61_000));
    RetryLayer::new(policy).layer(server.clone()).oneshot(get()).await.unwrap();
    assert!((61_000..=67_101).contains(&server.times()[1]));
}

// trap 19
#[tokio::test(start_paused = true)]
async fn wait_of_billions_of_seconds_ends_call() {
    for value in ["99999999999999999999999999", "18446744073709551615", "999999999"] {
        let server = asking("retry-after", value);
        let limits = policy().max_elapsed(None).max_server_delay(std::time::Duration::MAX);
        // Even if the cap allows it, the wait starts or is refused without a panic.
        let client = RetryLayer::new(limits).layer(server.clone());
        let mut call = task::spawn(client.oneshot(get()));
        let _ = call.poll();
        let client = RetryLayer::new(policy()).layer(server.clone());
        let _ = task::spawn(client.oneshot(get())).poll();

        let server = asking("retry-after", value);
        let mut call = task::spawn(RetryLayer::new(policy()).layer(server.clone()).oneshot(get()));
        let response = assert_ready!(call.poll()).unwrap();
        assert_eq!(report_of(&response).stop_reason(), StopReason::ServerDelayTooLong);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_stop_is_left_alone() {
    let server = asking("x-should-retry", "false");
    let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    assert_eq!(report_of(&response).stop_reason(), StopReason::ServerSaidStop);
}

#[tokio::test(start_paused = true)]
async fn should_retry_overrules_the_table() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(404).header("x-should-retry", "true"),
        _ => 200.into(),
    });
    let response = RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (200, 2));
}

#[tokio::test(start_paused = true)]
async fn seed_reproduces_delays_and_calls_differ() {
    let mut runs = Vec::new();
    for _ in 0..2 {
        let server = Server::statuses([503]);
        let client =
            RetryLayer::new(RetryPolicy::http().budget(RetryBudget::percent(10)).seed(7)).layer(server.clone());
        let mut delays = Vec::new();
        for _ in 0..4 {
            let response = client.clone().oneshot(get()).await.unwrap();
            delays.push(report_of(&response).total_delay());
        }
        assert_ne!(delays[0], delays[1], "each call draws from a stream of its own");
        runs.push(delays);
    }
    assert_eq!(runs[0], runs[1]);
}

#[tokio::test(start_paused = true)]
async fn past_date_leaves_the_schedule_its_delay() {
    for hint in ["0", "Sun, 06 Nov 1994 08:49:37 GMT"] {
        let server = asking("retry-after", hint);
        RetryLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
        assert_eq!(server.times(), [0, 100], "{hint}");
    }
}
