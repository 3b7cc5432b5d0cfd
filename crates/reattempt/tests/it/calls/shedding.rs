//! Tests of load shedding above a limit or a queue, below a layer that sends again.
//!
//! A shed instance is called although it is not ready. But its limit has queued it, and gives the next place to it for
//! as long as it lives.

use std::fmt;
use std::io::ErrorKind::ConnectionReset;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use reattempt::RetryLayer;
use reattempt::fallback::FallbackLayer;
use reattempt::guard::{Bulkhead, GuardLayer};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::standard::StandardLayer;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_test::{assert_pending, task};
use tower::buffer::Buffer;
use tower::limit::ConcurrencyLimit;
use tower::load_shed::LoadShed;
use tower::{Layer, Service, ServiceExt};

use crate::calls::support::{Act, Attempt, Body, Policy, Server, get, ms, policy, tokens};

/// A server with one place, which sheds calls while the place is taken.
#[derive(Clone)]
struct Crowded {
    server: Server,
    places: Arc<Semaphore>,
}

impl Crowded {
    /// Returns a server on which two of five responses are refusals, and one of seven is a lost connection.
    fn busy() -> Self {
        Self::of(Server::by(|arrival, _| {
            let act: Act = match arrival {
                _ if arrival % 7 == 0 => ConnectionReset.into(),
                _ if arrival % 5 < 2 => 503.into(),
                _ => 200.into(),
            };
            act.later(ms((arrival * 13 % 40) as u64))
        }))
    }

    fn of(server: Server) -> Self {
        Self { server, places: Arc::new(Semaphore::new(1)) }
    }

    fn limited(&self) -> LoadShed<ConcurrencyLimit<Server>> {
        let places = Arc::clone(&self.places);
        LoadShed::new(ConcurrencyLimit::with_semaphore(self.server.clone(), places))
    }

    /// Makes 300 calls, ten every half second, some of which the callers drop. When they are over, one more call
    /// reaches the server, and nothing reserves a place.
    async fn survives<C>(&self, client: C)
    where
        C: Service<Request<Body>, Error: fmt::Debug + Send> + Clone + Send + 'static,
        C::Response: Send,
        C::Future: Send,
    {
        let mut calls = JoinSet::new();
        for call in 0..300_u64 {
            let client = client.clone();
            calls.spawn(async move {
                sleep(ms(call / 10 * 500 + call % 10 * 21)).await;
                let patience = if call % 4 == 0 { ms(call * 17 % 150) } else { Duration::MAX };
                timeout(patience, client.oneshot(get())).await.is_ok()
            });
        }
        let ended = calls.join_all().await.into_iter().filter(|ended| *ended).count();
        assert!((225..300).contains(&ended), "{ended}");
        assert!(self.server.count() > 30, "{}", self.server.count());
        sleep(ms(60_000)).await;
        let before = self.server.count();
        let _ = client.oneshot(get()).await;
        assert!(self.server.count() > before, "the place is lost");
        assert_eq!(self.places.available_permits(), 1);
    }
}

fn eager() -> Policy {
    policy().budget(tokens(1000.0))
}

// trap 50
#[tokio::test(start_paused = true)]
async fn retry_above_load_shed_loses_no_place() {
    let crowded = Crowded::busy();
    let layer = RetryLayer::new(eager().boxed_errors());
    crowded.survives(layer.layer(crowded.limited())).await;
    let layer = RetryLayer::new(eager().boxed_errors().clone_per_call(true));
    crowded.survives(layer.layer(crowded.limited())).await;
    let hooked = eager().before_attempt(|_: &mut http::request::Parts, _| Box::pin(async {}));
    let layer = RetryLayer::new(hooked.boxed_errors());
    crowded.survives(layer.layer(crowded.limited())).await;
}

// trap 50
#[tokio::test(start_paused = true)]
async fn hedge_above_load_shed_loses_no_place() {
    let crowded = Crowded::busy();
    let policy = HedgePolicy::http().delay(ms(10)).budget(tokens(1000.0)).boxed_errors();
    crowded.survives(HedgeLayer::new(policy).layer(crowded.limited())).await;
}

// trap 50
#[tokio::test(start_paused = true)]
async fn stack_above_load_shed_loses_no_place() {
    let crowded = Crowded::busy();
    let layer = StandardLayer::http().guards(Bulkhead::new(64));
    let layer = layer.retry(eager().boxed_errors());
    crowded.survives(layer.layer(crowded.limited())).await;
    let guard = GuardLayer::http(Bulkhead::new(4).queue(100, ms(100)));
    let layer = RetryLayer::new(eager().boxed_errors());
    crowded.survives(layer.layer(guard.layer(crowded.limited()))).await;
}

// trap 50
#[tokio::test(start_paused = true)]
async fn backup_above_load_shed_loses_no_place() {
    let crowded = Crowded::busy();
    let primary = Server::statuses([503]);
    let backup = RetryLayer::new(eager().boxed_errors()).layer(crowded.limited());
    let primary = RetryLayer::new(eager().boxed_errors()).layer(primary);
    crowded.survives(FallbackLayer::backup(backup).layer(primary)).await;
}

/// One request waits for the place, and one more in the queue, so the calls after them are shed.
// trap 50
#[tokio::test(start_paused = true)]
async fn retry_above_full_buffer_loses_no_slot() {
    let crowded = Crowded::of(Server::statuses([200]));
    let places = Arc::clone(&crowded.places);
    let limited = ConcurrencyLimit::with_semaphore(crowded.server.clone(), Arc::clone(&places));
    let buffer = LoadShed::new(Buffer::<Attempt, _>::new(limited, 1));
    let client = RetryLayer::new(policy().boxed_errors()).layer(buffer);
    let place = places.try_acquire_owned().unwrap();
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(tokio::spawn(client.send(get())));
        sleep(ms(1)).await;
    }
    client.send(get()).await.map(drop).unwrap_err();
    drop(place);
    for call in waiting {
        call.await.unwrap().unwrap();
    }
    client.send(get()).await.expect("the slot is lost");
}

/// A shed call is sent again when the place is free, because its own handle has not taken the place.
macro_rules! shed_call_is_sent_later {
    ($client:expr) => {{
        let crowded = Crowded::of(Server::statuses([200]));
        let client = $client(crowded.limited());
        let place = Arc::clone(&crowded.places).try_acquire_owned().unwrap();
        let mut call = task::spawn(client.send(get()));
        assert_pending!(call.poll());
        drop(place);
        assert_eq!(crowded.places.available_permits(), 1, "the handle that was shed is gone");
        assert_eq!(call.await.unwrap().status(), 200);
        assert_eq!(crowded.server.count(), 1);
    }};
}

// trap 50
#[tokio::test(start_paused = true)]
async fn send_keeps_no_handle_that_was_shed() {
    shed_call_is_sent_later!(|service| RetryLayer::new(policy().boxed_errors()).layer(service));
    let retry = || policy().boxed_errors();
    shed_call_is_sent_later!(|service| StandardLayer::http().retry(retry()).layer(service));
}

// trap 50
#[tokio::test(start_paused = true)]
async fn backup_keeps_no_handle_that_was_shed() {
    let backup = |service| {
        let backup = RetryLayer::new(policy().boxed_errors()).layer(service);
        let once = RetryLayer::new(policy().max_attempts(1)).layer(Server::statuses([503]));
        FallbackLayer::backup(backup).layer(once)
    };
    shed_call_is_sent_later!(backup);
}

/// While a retry waits for its delay, nothing of the previous attempt is queued.
// trap 50
#[tokio::test(start_paused = true)]
async fn backoff_keeps_no_instance_that_was_shed() {
    let crowded = Crowded::of(Server::statuses([503, 200]));
    let client = RetryLayer::new(policy().boxed_errors()).layer(crowded.limited());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    let place = Arc::clone(&crowded.places).try_acquire_owned().unwrap();
    sleep(ms(150)).await;
    assert_pending!(call.poll());
    drop(place);
    assert_eq!(crowded.places.available_permits(), 1, "the instance that was shed is gone");
    assert_eq!(call.await.unwrap().status(), 200);
    assert_eq!(crowded.server.times(), [0, 250]);
}
