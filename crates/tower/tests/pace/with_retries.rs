//! Pacing beside a retry layer: inside of it with a pace of its own, and outside of it with the pace
//! that is its schedule.

use bytes::Bytes;
use http::Request;
use http_body_util::Empty;
use reattempt_control::RetryBudget;
use reattempt_schedule_fixed::Constant;
use reattempt_tower::{PaceLayer, Report, RetryLayer, RetryPolicy};
use tower::{Layer, Service, ServiceBuilder};

use super::support::{Answer, Server, call, ms, pace};

fn policy() -> RetryPolicy<reattempt_tower::Http, Constant> {
    RetryPolicy::http()
        .schedule(Constant::new(ms(10)))
        .budget(RetryBudget::unlimited())
        .max_attempts(4)
}

fn checked<S>(client: S) -> S
where
    S: Service<Request<Empty<Bytes>>, Response = Answer>,
{
    client
}

#[tokio::test(start_paused = true)]
async fn inside_of_a_retry_layer_every_attempt_is_paced() {
    let server = Server::statuses([429, 429, 503, 200]);
    let pace = pace();
    let mut client = checked(
        ServiceBuilder::new()
            .layer(RetryLayer::new(policy()))
            .layer(PaceLayer::http(pace.clone()))
            .service(server.watch()),
    );
    let answer = call(&mut client).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(answer.extensions().get::<Report>().unwrap().attempts().len(), 4);
    // 10 ms of the schedule and 100, 200, 200 of the pace.
    assert_eq!(server.arrivals(), [0, 110, 320, 530].map(ms));
    let metrics = pace.metrics();
    assert_eq!((metrics.invocations, metrics.times_up, metrics.times_slept), (4, 2, 3));
}

#[tokio::test(start_paused = true)]
async fn one_pace_as_schedule_and_layer_counts_each_outcome_once() {
    let server = Server::statuses([429, 429, 200]);
    let pace = pace().threshold(3).unwrap();
    let mut client = checked(
        ServiceBuilder::new()
            .layer(PaceLayer::http(pace.clone()).waits_only())
            .layer(RetryLayer::new(policy().schedule(pace.clone())))
            .service(server.watch()),
    );
    call(&mut client).await.unwrap();
    // The first at once, the retries after 100 and 200 ms: no wait is made twice.
    assert_eq!(server.arrivals(), [0, 100, 300].map(ms));
    let metrics = pace.metrics();
    assert_eq!((metrics.invocations, metrics.times_up), (3, 2));
    assert_eq!((metrics.times_slept, metrics.total_slept), (2, ms(300)));

    // The layer paces the calls that succeed at once. Three successes, the first call's included,
    // are a run, and not two.
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
async fn as_a_schedule_alone_it_moves_with_every_attempt_of_every_call() {
    let server = Server::statuses([429, 429, 429, 429, 429, 200]);
    let pace = pace();
    let policy = policy().schedule(pace.clone()).max_attempts(3);
    let mut client = checked(RetryLayer::new(policy).layer(server.watch()));
    assert_eq!(call(&mut client).await.unwrap().status(), 429);
    assert_eq!(call(&mut client).await.unwrap().status(), 200);
    // The last refusal of a call moves it, too, though no retry follows.
    assert_eq!(server.arrivals(), [0, 100, 300, 300, 1100, 2700].map(ms));
    assert_eq!(pace.metrics().times_up, 5);
}

#[tokio::test(start_paused = true)]
async fn the_limits_of_a_retry_layer_see_the_delays_of_its_schedule() {
    let server = Server::statuses([429]);
    let pace = pace();
    let policy = policy().schedule(pace.clone()).max_elapsed(ms(250));
    let mut client = checked(RetryLayer::new(policy).layer(server.watch()));
    assert_eq!(call(&mut client).await.unwrap().status(), 429);
    assert_eq!(server.arrivals(), [0, 100].map(ms));
    // The delay that was refused was given out, and counts as documented.
    assert_eq!(pace.metrics().times_slept, 2);
}
