//! Tests of a guard inside a hedge layer: a hedge does not wait, and a refused one was not sent.

use reattempt::guard::{GuardLayer, Refused};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_testing_layers::calls::{Act, Body, Log, Server, get, ms, tokens};
use reattempt_testing_layers::guard::{Recorder, refused};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

fn client(
    policy: HedgePolicy<reattempt::Http>,
    guard: &Recorder,
    server: &Server,
) -> impl Service<http::Request<Body>, Response: Send, Error = BoxError, Future: Send> + Clone + use<> {
    ServiceBuilder::new()
        .layer(HedgeLayer::new(policy.boxed_errors()))
        .layer(GuardLayer::http(guard.clone()))
        .service(server.clone())
}

fn slow() -> Server {
    Server::by(|_, _| Act::from(200).later(ms(500)))
}

// G-21
#[tokio::test(start_paused = true)]
async fn refused_hedge_was_not_sent() {
    let (server, guard, budget) = (slow(), Recorder::default(), tokens(10.0));
    let policy = HedgePolicy::http().max_attempts(3).delay(ms(100)).budget(budget.clone());
    let client = client(policy, &guard, &server);
    let call = tokio::spawn(client.oneshot(get()));
    tokio::time::sleep(ms(50)).await;
    guard.refuse(refused());
    assert!(call.await.unwrap().is_ok());
    assert_eq!(server.times(), [0]);
    assert_eq!(guard.log(), ["admitted", "refused", "Served"]);
    assert_eq!(budget.balance("one.example"), 10.0, "the permit came back");
}

/// No observer is notified of a hedge that a guard refuses, because no attempt was sent.
// G-21
#[tokio::test(start_paused = true)]
async fn refused_hedge_is_no_attempt() {
    for (max_attempts, refuses) in [(2, true), (3, true), (2, false)] {
        let (server, guard, log) = (slow(), Recorder::default(), Log::default());
        let policy = HedgePolicy::http().max_attempts(max_attempts).delay(ms(100));
        let client = client(policy.observe_with(log.clone()), &guard, &server);
        let call = tokio::spawn(client.oneshot(get()));
        tokio::time::sleep(ms(50)).await;
        if refuses {
            guard.refuse(refused());
        }
        assert!(call.await.unwrap().is_ok());
        let sent = "one.example: attempt 2 in 100ms";
        let expected = match refuses {
            true => vec!["one.example: succeeded on attempt 1"],
            false => vec![sent, "one.example: succeeded on attempt 2"],
        };
        assert_eq!(log.lines(), expected);
    }
}

// G-21
#[tokio::test(start_paused = true)]
async fn hedge_does_not_wait_for_a_guard() {
    let (server, guard) = (slow(), Recorder::queueing());
    let policy = HedgePolicy::http().max_attempts(2).delay(ms(100));
    let call = tokio::spawn(client(policy, &guard, &server).oneshot(get()));
    tokio::time::sleep(ms(200)).await;
    guard.release();
    assert!(call.await.unwrap().is_ok());
    assert_eq!(server.times(), [200]);
    assert_eq!(guard.log(), ["waiting", "impatient", "Served"]);
}

#[tokio::test(start_paused = true)]
async fn refused_first_attempt_ends_the_call() {
    let (server, guard) = (slow(), Recorder::default());
    guard.refuse(refused());
    let policy = HedgePolicy::http().max_attempts(2).delay(ms(100));
    let error = client(policy, &guard, &server).oneshot(get()).await.err().unwrap();
    assert!(error.is::<Refused>());
    assert_eq!((server.count(), guard.log().len()), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn cancelled_loser_is_abandoned() {
    let guard = Recorder::default();
    let server = Server::by(|number, _| match number {
        1 => Act::Hang,
        _ => 200.into(),
    });
    let policy = HedgePolicy::http().max_attempts(2).delay(ms(100));
    assert!(client(policy, &guard, &server).oneshot(get()).await.is_ok());
    assert_eq!(guard.log(), ["admitted", "admitted", "Served", "abandoned"]);
}
