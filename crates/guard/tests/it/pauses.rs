//! Tests of the pause around a client: a wait that one call is told holds back all calls, and they return in turn.

use std::fmt::Debug;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderValue, Request, Response};
use reattempt::guard::handle::{self, PauseExt};
use reattempt::guard::{GuardLayer, Limit, Pause, RateLimit, Reason, Refused, SendRate};
use reattempt::{Deadline, Http, RetryLayer};
use reattempt_testing_layers::calls::{Act, Body, ONE, Server, TWO, With, answer, get, ms, policy};
use reattempt_testing_layers::guard::attempt;
use tokio::time::sleep;
use tower::{Layer, Service, ServiceExt};

/// A server that allows this many calls in each second of its clock, and refuses the others with a wait of 2 s. From
/// the first refusal on, it refuses every call of these 2 s.
#[derive(Clone, Default)]
struct Strict(Arc<Mutex<StrictState>>);

#[derive(Default)]
struct StrictState {
    /// The second in which calls are counted, and their number.
    used: (u64, u32),
    closed_until: Duration,
    refused: u32,
}

impl Strict {
    fn server(&self, per_second: u32, status: u16) -> Server {
        let state = Arc::clone(&self.0);
        Server::by(move |_, _| {
            let now = handle::now();
            let mut state = state.lock().unwrap();
            if state.used.0 != now.as_secs() {
                state.used = (now.as_secs(), 0);
            }
            state.used.1 += 1;
            let (used, closed) = (state.used.1, now < state.closed_until);
            if used <= per_second && !closed {
                return 200.into();
            }
            if !closed {
                state.closed_until = now + Duration::from_secs(2);
            }
            state.refused += 1;
            let mut refusal = answer(status, "");
            refusal.headers_mut().insert("retry-after", HeaderValue::from_static("2"));
            Act::Answer(refusal)
        })
    }

    fn refused(&self) -> u32 {
        std::mem::take(&mut self.0.lock().unwrap().refused)
    }
}

/// Uses up the second's calls, so that the next call is refused, then makes 30 calls in the 2 s of its wait.
/// Returns how many of these are sent within them, and how many of the 31 calls are served in the end.
async fn thirty_calls<S, B>(client: &S, server: &Server) -> (usize, usize)
where
    S: Service<Request<Body>, Response = Response<B>, Error: Debug + Send, Future: Send> + Clone + Send + 'static,
    B: Send + 'static,
{
    // The server counts by the second.
    sleep(Duration::from_secs(1) - Duration::from_nanos(handle::now().subsec_nanos().into())).await;
    for _ in 0..20 {
        client.clone().oneshot(get()).await.unwrap();
    }
    let first = tokio::spawn(client.clone().oneshot(get()));
    sleep(ms(1)).await;
    let before = server.count();
    let mut calls = Vec::new();
    for _ in 0..30 {
        calls.push(tokio::spawn(client.clone().oneshot(get())));
        sleep(ms(60)).await;
    }
    let sent = server.count() - before;
    calls.push(first);
    let mut served = 0;
    for call in calls {
        served += usize::from(call.await.unwrap().unwrap().status() == 200);
    }
    (sent, served)
}

/// One call is told to wait 2 s. The other calls of these 2 s are not sent before, and all are served without a second
/// refusal by a server that allows 20 calls a second. Without the pause, each of them is refused.
// field 24
#[tokio::test(start_paused = true)]
async fn wait_of_one_call_holds_back_all() {
    for status in [429, 503] {
        let strict = Strict::default();
        let server = strict.server(20, status);
        let client =
            RetryLayer::new(policy().boxed_errors()).layer(GuardLayer::http(Pause::new()).layer(server.clone()));
        assert_eq!(thirty_calls(&client, &server).await, (0, 31), "{status}");
        assert_eq!(strict.refused(), 1, "{status}");
        assert_eq!(server.count(), 20 + 1 + 31, "{status}");
    }
    let strict = Strict::default();
    let server = strict.server(20, 429);
    let client = RetryLayer::new(policy().boxed_errors()).layer(server.clone());
    assert!(thirty_calls(&client, &server).await.0 >= 30);
    assert!(strict.refused() > 30);
}

/// A rate limit and a send rate follow the wait of a 503, too.
// field 24
#[tokio::test(start_paused = true)]
async fn limits_follow_the_wait_of_a_503() {
    for status in [429, 503] {
        let strict = Strict::default();
        let server = strict.server(20, status);
        let limit = RateLimit::new(Limit::per_second(19), 20);
        let client = RetryLayer::new(policy().boxed_errors()).layer(GuardLayer::http(limit).layer(server.clone()));
        let (sent, served) = thirty_calls(&client, &server).await;
        assert!(sent <= 1 && served == 31, "{status}: {sent} {served}");
        assert_eq!(strict.refused(), 1, "{status}");

        let server = Server::by(move |_, _| Act::from(status).header("retry-after", "1"));
        let rate = SendRate::new();
        let client = GuardLayer::http(rate.clone()).layer(server);
        client.send(attempt(ONE)).await.unwrap();
        assert!(!rate.limit("one.example").is_infinite(), "{status}");
    }
}

/// The calls of another server, and those of another tenant, are not held back.
#[tokio::test(start_paused = true)]
async fn key_of_the_pause_is_the_callers() {
    let server = || {
        Server::by(|_, head| match head.headers.get("x-tenant").is_some_and(|tenant| tenant == "busy") {
            true => Act::from(429).header("retry-after", "60"),
            false => 200.into(),
        })
    };
    let busy = |uri| attempt(uri).header("x-tenant", "busy");
    let calm = |uri| attempt(uri).header("x-tenant", "calm");
    let pause = Pause::new().no_queue();
    let client = GuardLayer::http(pause.clone()).layer(server());
    assert_eq!(client.send(busy(ONE)).await.unwrap().status(), 429);
    assert_eq!(client.send(calm(TWO)).await.unwrap().status(), 200);
    let refused = client.send(calm(ONE)).await.unwrap_err();
    let refused = refused.downcast_ref::<Refused>().unwrap();
    assert_eq!((refused.reason(), refused.wait()), (Reason::Paused, Some(ms(60_000))));
    assert_eq!(pause.time_left("one.example"), ms(60_000));

    let tenant =
        Http::new().destination_for(|request| String::from_utf8_lossy(request.header("x-tenant").unwrap_or_default()));
    let pause = Pause::new().no_queue();
    let client = GuardLayer::with(tenant, pause.clone()).layer(server());
    assert_eq!(client.send(busy(ONE)).await.unwrap().status(), 429);
    assert_eq!(client.send(calm(ONE)).await.unwrap().status(), 200);
    assert!(client.send(busy(TWO)).await.is_err(), "the tenant is paused at every server");
    assert_eq!(pause.time_left("busy"), ms(60_000));
    assert_eq!(pause.time_left("calm"), Duration::ZERO);
}

/// A dropped call leaves the queue, and a call that would wait past its deadline is refused at once.
#[tokio::test(start_paused = true)]
async fn waiting_call_can_be_dropped() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(503).header("retry-after", "2"),
        _ => 200.into(),
    });
    let pause = Pause::new();
    let client = GuardLayer::http(pause.clone()).layer(server.clone());
    client.send(attempt(ONE)).await.unwrap();
    let call = tokio::spawn(client.send(attempt(ONE)));
    sleep(ms(1)).await;
    assert_eq!(pause.waiting("one.example"), 1);
    call.abort();
    assert!(call.await.is_err());
    assert_eq!((pause.waiting("one.example"), server.count()), (0, 1));
    let hasty = attempt(ONE).with(Deadline::after(ms(500)));
    let refused = client.send(hasty).await.unwrap_err();
    assert_eq!(refused.downcast_ref::<Refused>().unwrap().reason(), Reason::Paused);
}
