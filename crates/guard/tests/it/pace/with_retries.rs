//! Tests of pacing beside a retry layer: inside it with its own pace, and outside it with the pace that is its
//! schedule.

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Empty;
use reattempt::guard::{GuardLayer, Pace};
use reattempt::{Report, RetryLayer, RetryPolicy};
use reattempt_control::RetryBudget;
use reattempt_core::StopReason;
use reattempt_schedule_fixed::Constant;
use reattempt_schedule_responsive::Responsive;
use tower::{Layer, Service, ServiceBuilder};

use super::support::{Answer, Server, answer, call, ms, pace, secs};

fn policy() -> RetryPolicy<reattempt::Http, Constant> {
    RetryPolicy::http().backoff(Constant::new(ms(10))).budget(RetryBudget::unlimited()).max_attempts(4)
}

fn checked<S, B>(client: S) -> S
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>>,
{
    client
}

#[tokio::test(start_paused = true)]
async fn inner_pace_delays_every_attempt() {
    let server = Server::statuses([429, 429, 503, 200]);
    let pace = pace();
    let mut client = checked(
        ServiceBuilder::new()
            .layer(RetryLayer::new(policy().boxed_errors()))
            .layer(GuardLayer::http(Pace::new(pace.clone())))
            .service(server.watch()),
    );
    let answer = call(&mut client).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.extensions().get::<Report>().unwrap().attempts().len(), 4);
    // The first turn is 100 ms after the retry reached the layer. The schedule's delays pass during the waits for the
    // next turns.
    assert_eq!(server.arrivals(), [0, 110, 310, 510].map(ms));
    let metrics = pace.metrics();
    assert_eq!((metrics.invocations, metrics.times_up, metrics.times_slept), (4, 2, 3));
}

#[tokio::test(start_paused = true)]
async fn shared_pace_counts_each_outcome_once() {
    let server = Server::statuses([429, 429, 200]);
    let pace = pace().threshold(3);
    let mut client = checked(
        ServiceBuilder::new()
            .layer(GuardLayer::http(Pace::new(pace.clone()).waits_only(true)))
            .layer(RetryLayer::new(policy().backoff(pace.clone())))
            .service(server.watch()),
    );
    call(&mut client).await.unwrap();
    // The first at once, the retries after 100 and 200 ms: no delay is waited twice.
    assert_eq!(server.arrivals(), [0, 100, 300].map(ms));
    let metrics = pace.metrics();
    assert_eq!((metrics.invocations, metrics.times_up), (3, 2));
    assert_eq!((metrics.times_slept, metrics.total_slept), (2, ms(300)));

    // The layer paces calls that succeed at once. Three successes, including the first call's, are one run and not two.
    call(&mut client).await.unwrap();
    assert_eq!(pace.interval(), ms(200));
    call(&mut client).await.unwrap();
    assert_eq!(pace.interval(), ms(100));
    assert_eq!(server.arrivals()[3..], [500, 700].map(ms));
    let metrics = pace.metrics();
    assert_eq!((metrics.invocations, metrics.times_down), (5, 1));
    assert_eq!((metrics.times_slept, metrics.total_slept), (4, ms(700)));
}

#[tokio::test(start_paused = true)]
async fn schedule_alone_moves_with_every_attempt() {
    let server = Server::statuses([429, 429, 429, 429, 429, 200]);
    let pace = pace();
    let policy = policy().backoff(pace.clone()).max_attempts(3);
    let mut client = checked(RetryLayer::new(policy).layer(server.watch()));
    assert_eq!(call(&mut client).await.unwrap().status(), 429);
    assert_eq!(call(&mut client).await.unwrap().status(), 200);
    // A call's last refusal moves it too, although no retry follows.
    assert_eq!(server.arrivals(), [0, 100, 300, 300, 1100, 2700].map(ms));
    assert_eq!(pace.metrics().times_up, 5);
}

/// After a long outage the interval exceeds the elapsed-time limit. Calls that succeed at once shorten it.
// trap 20
#[tokio::test(start_paused = true)]
async fn retries_work_again_after_a_long_outage() {
    const OUTAGE: usize = 60;
    let server = Server::<Answer>::by(|number| match number {
        ..=OUTAGE => Ok(answer(429)),
        // One call in fifty is refused for another reason.
        _ => Ok(answer(if number % 50 == 0 { 503 } else { 200 })),
    });
    let pace = Responsive::new();
    let policy = policy().backoff(pace.clone()).max_elapsed(secs(30)).seed(1);
    let mut client = checked(RetryLayer::new(policy).layer(server.watch()));
    let mut stopped = Vec::new();
    let mut calls = 0;
    while server.arrivals().len() < OUTAGE {
        let answer = call(&mut client).await.unwrap();
        stopped.push(answer.extensions().get::<Report>().unwrap().stop_reason());
    }
    assert_eq!(stopped.last(), Some(&StopReason::IntervalTooLong));
    assert_eq!(pace.interval(), secs(15 * 60));

    // Ten successes shorten it by a tenth, so about 320 bring it below 30 s.
    while calls < 1000 {
        let answer = call(&mut client).await.unwrap();
        calls += 1;
        let report = answer.extensions().get::<Report>();
        if report.is_some_and(|report| report.stop_reason() == StopReason::Succeeded) {
            assert_eq!(report.unwrap().attempts().len(), 2);
            break;
        }
    }
    assert!((200..600).contains(&calls), "{calls}");
    assert!(pace.interval() < secs(30), "{pace:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_limits_see_delays_of_schedule() {
    let server = Server::statuses([429]);
    let pace = pace();
    let policy = policy().backoff(pace.clone()).max_elapsed(ms(250));
    let mut client = checked(RetryLayer::new(policy).layer(server.watch()));
    let answer = call(&mut client).await.unwrap();
    assert_eq!(answer.status(), 429);
    let report: &Report = answer.extensions().get().unwrap();
    assert_eq!(report.stop_reason(), StopReason::IntervalTooLong);
    assert_eq!(server.arrivals(), [0, 100].map(ms));
    // The refused delay was returned, and counts as documented.
    assert_eq!(pace.metrics().times_slept, 2);
}
