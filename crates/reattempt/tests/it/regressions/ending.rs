//! Tests of a call's state after it has ended while its future is still held.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use reattempt::RetryLayer;
use reattempt_core::{Budget, Failure, Permit};
use reattempt_replay::{ReplayLimits, ReplayMemory};
use tokio_test::assert_pending;
use tokio_test::task::{self, Spawn};
use tower::{Layer, Service, ServiceExt};

use crate::regressions::support::{Server, get, policy, post, put, watched};

/// Returns the call's own future, which `oneshot` would drop at its end.
async fn started<R, C>(mut client: C, request: R) -> Spawn<C::Future>
where
    C: Service<R, Error: std::fmt::Debug>,
{
    task::spawn(client.ready().await.unwrap().call(request))
}

#[tokio::test(start_paused = true)]
async fn call_polled_after_end_sends_nothing() {
    for (request, attempts) in [(post(), 1), (get(), 3)] {
        let server = Server::statuses([503]);
        let client = RetryLayer::new(policy()).layer(server.clone());
        let mut call = started(client, request).await;
        assert_eq!((&mut call).await.unwrap().status(), 503);
        assert_pending!(call.poll());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert_pending!(call.poll());
        assert_eq!(server.count(), attempts, "after the end");
    }
}

#[tokio::test(start_paused = true)]
async fn ended_call_holds_no_body_and_no_memory() {
    // A final refusal, and a success after a retry: the body was kept in both.
    for statuses in [[404, 404], [503, 200]] {
        let memory = ReplayMemory::new(1000);
        let policy = policy().protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())));
        let client = RetryLayer::new(policy).layer(Server::statuses(statuses));
        let (body, watch) = watched(put().into_body());
        let request = http::Request::put("http://one.example/").body(body).unwrap();
        let mut call = started(client, request).await;
        (&mut call).await.unwrap();
        assert_eq!((memory.used(), watch.is_dropped()), (0, true), "{statuses:?}");
        drop(call);
    }
}

/// A budget that is full until `spent` is set, and records the destinations of its credits.
#[derive(Clone, Default)]
struct Credited {
    spent: Arc<AtomicBool>,
    destinations: Arc<Mutex<Vec<String>>>,
}

impl Budget for Credited {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        None
    }

    fn on_success(&self, destination: &str, _: u32) {
        self.destinations.lock().unwrap().push(destination.to_owned());
    }

    fn is_full(&self) -> bool {
        !self.spent.load(Ordering::Relaxed)
    }
}

#[tokio::test(start_paused = true)]
async fn a_success_is_never_credited_to_nobody() {
    let budget = Credited::default();
    let spent = budget.spent.clone();
    // Other calls spend tokens while the call is in flight.
    let server = Server::by(move |_, _| {
        spent.store(true, Ordering::Relaxed);
        200.into()
    });
    let policy = policy().budget(budget.clone()).max_attempts(1);
    let client = RetryLayer::new(policy).layer(server);
    client.clone().oneshot(get()).await.unwrap();
    assert!(budget.destinations.lock().unwrap().is_empty(), "it was not known whom it was for");
    client.oneshot(get()).await.unwrap();
    assert_eq!(*budget.destinations.lock().unwrap(), ["one.example"]);
}
