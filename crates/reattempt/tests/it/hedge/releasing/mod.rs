//! Tests of what a waiting call releases: a refused response, a reserved place, and resources after a passed deadline.

mod late;

use std::io::Error;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full};
use reattempt::hedge::HedgeLayer;
use reattempt::{Deadline, Report};
use reattempt_core::{Budget, Failure, Permit};
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, advance};
use tokio_test::{assert_pending, task};
use tower::{BoxError, Layer, Service, ServiceExt, service_fn};

use crate::calls::support::With;
use crate::hedge::budget::Heard;
use crate::hedge::policy;
use crate::hedge::support::{Act, Body, ONE, Server, answer, get, ms, of_frames, options, tokens, watched};

type Attempt<B = Body> = Request<ReplayBody<B>>;

/// A body that holds its place until it is read to its end or dropped.
#[derive(Debug)]
struct Held {
    body: Full<Bytes>,
    place: Option<OwnedSemaphorePermit>,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.place.take_if(|_| frame.is_none());
        Poll::Ready(frame)
    }
}

/// A service with a number of places, each held from readiness until the response's body is gone.
struct Bulkhead {
    server: Server,
    places: Arc<Semaphore>,
    waiting: Option<Pin<Box<dyn Future<Output = OwnedSemaphorePermit> + Send>>>,
    place: Option<OwnedSemaphorePermit>,
}

impl Bulkhead {
    fn new(places: usize, server: &Server) -> Self {
        let places = Arc::new(Semaphore::new(places));
        Self { server: server.clone(), places, waiting: None, place: None }
    }
}

impl Clone for Bulkhead {
    fn clone(&self) -> Self {
        let (server, places) = (self.server.clone(), Arc::clone(&self.places));
        Self { server, places, waiting: None, place: None }
    }
}

impl<B> Service<Attempt<B>> for Bulkhead
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Held>;
    type Error = crate::hedge::support::Broken;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        if self.place.is_none() {
            let places = &self.places;
            let waiting = self.waiting.get_or_insert_with(|| {
                let places = Arc::clone(places);
                Box::pin(async move { places.acquire_owned().await.unwrap() })
            });
            self.place = Some(ready!(waiting.as_mut().poll(cx)));
            self.waiting = None;
        }
        Service::<Attempt<B>>::poll_ready(&mut self.server, cx)
    }

    fn call(&mut self, request: Attempt<B>) -> Self::Future {
        let (answer, place) = (self.server.call(request), self.place.take());
        Box::pin(async move { Ok(answer.await?.map(|_| Held { body: "body".into(), place })) })
    }
}

/// Returns a server that refuses the first attempt and serves the others.
fn refuses_first() -> Server {
    Server::statuses([503, 200])
}

// trap 43
#[tokio::test(start_paused = true)]
async fn refused_response_frees_place_it_holds() {
    let server = refuses_first();
    let client = HedgeLayer::new(policy()).layer(Bulkhead::new(1, &server));
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), server.times()), (200, vec![0, 0]));
}

// trap 43
#[tokio::test(start_paused = true)]
async fn refused_response_frees_it_beside_another() {
    // Two places: one for the slow first attempt, one for the refused second.
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::from(200).later(ms(5000)),
        2 => 503.into(),
        _ => 200.into(),
    });
    let client = HedgeLayer::new(policy()).layer(Bulkhead::new(2, &server));
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!(Report::of(&answer).unwrap().winner().unwrap(), 3);
    assert_eq!(server.times(), [0, 100, 100]);
}

// trap 43
#[tokio::test(start_paused = true)]
async fn refused_response_frees_place_in_flight() {
    // The place is taken inside the attempt.
    let (server, places) = (refuses_first(), Arc::new(Semaphore::new(1)));
    let client = service_fn(move |request: Attempt| {
        let (server, places) = (server.clone(), Arc::clone(&places));
        async move {
            let place = places.acquire_owned().await.unwrap();
            let answer = server.oneshot(request).await?;
            Ok::<_, BoxError>(answer.map(|_| Held { body: "body".into(), place: Some(place) }))
        }
    });
    let began = Instant::now();
    let client = HedgeLayer::new(policy().boxed_errors()).layer(client);
    let answer = client.oneshot(get().with(Deadline::after(ms(9000)))).await.unwrap();
    assert_eq!((answer.status().as_u16(), began.elapsed()), (200, ms(0)));
}

/// Returns a refusal with a body that stays open, and a requested delay of 20 s.
fn busy() -> (Server, crate::hedge::support::Watch) {
    let (body, watch) = watched(crate::hedge::support::endless(ms(60_000)));
    let body = std::sync::Mutex::new(Some(body));
    let server = Server::by(move |arrival, _| match (arrival, body.lock().unwrap().take()) {
        (1, Some(body)) => {
            let mut busy = answer(503, "").map(|_| body.boxed());
            busy.headers_mut().insert("retry-after", "20".parse().unwrap());
            Act::Answer(busy)
        }
        _ => 200.into(),
    });
    (server, watch)
}

// trap 16, trap 43
#[tokio::test(start_paused = true)]
async fn refused_response_is_gone_during_the_wait() {
    let (server, watch) = busy();
    let heard = Heard::default();
    let client = HedgeLayer::new(policy().budget(heard.clone())).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    assert!(watch.is_dropped());
    assert_eq!(heard.lines().len(), 2, "the budget is asked before the wait: {:?}", heard.lines());
    assert_eq!((call.await.unwrap().status().as_u16(), server.unused()), (200, 0));
    assert!(server.times()[1] >= 20_000);
}

/// A budget that refuses everything.
struct Refuses;

impl Budget for Refuses {
    fn acquire(&self, _: &str, _: &Failure, _: Duration) -> Option<Permit> {
        None
    }
}

// trap 16
#[tokio::test(start_paused = true)]
async fn refused_by_budget_does_not_wait_first() {
    let (server, watch) = busy();
    let client = HedgeLayer::new(policy().budget(Refuses)).layer(server.clone());
    let began = Instant::now();
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), began.elapsed()), (503, ms(0)));
    assert!(!watch.is_dropped(), "it is the caller's, with its body");
}

// trap 11
#[tokio::test(start_paused = true)]
async fn dropped_during_wait_gives_token_back() {
    let (server, _) = busy();
    let policy = policy().budget(tokens(5.0));
    let client = HedgeLayer::new(policy.clone()).layer(server.clone());
    let mut call = task::spawn(client.oneshot(get()));
    assert_pending!(call.poll());
    assert_eq!(policy.budget_ref().balance("one.example"), 4.0);
    drop(call);
    assert_eq!((policy.budget_ref().balance("one.example"), server.count()), (5.0, 1));
}

/// If an attempt in flight could still be cut off from the body, the refusal is the outcome (BUF-8).
#[tokio::test(start_paused = true)]
async fn refused_response_stays_while_streaming() {
    let (body, watch) = watched(crate::hedge::support::endless(ms(60_000)));
    let body = std::sync::Mutex::new(Some(body));
    let server = Server::by(move |arrival, _| match arrival {
        1 => Act::from(200).later(ms(1000)),
        _ => Act::Answer(answer(503, "").map(|_| body.lock().unwrap().take().unwrap().boxed())),
    });
    let upload = of_frames([Ok::<_, Error>("one"), Ok("two")]);
    let request = Request::put(ONE).body(upload).unwrap().with(options().repeatable(true));
    let client = HedgeLayer::new(policy().max_attempts(2)).layer(server.clone());
    let mut call = task::spawn(client.oneshot(request));
    assert_pending!(call.poll());
    advance(ms(101)).await;
    assert_pending!(call.poll());
    assert_eq!((server.count(), watch.is_dropped()), (2, false));
    assert_eq!(call.await.unwrap().status(), 200);
    assert!(watch.is_dropped());
}

/// Returns a server that refuses two attempts, the second with a delay, and then responds slowly.
fn slow() -> Server {
    Server::by(|arrival, _| match arrival {
        1 => Act::from(503).later(ms(25)),
        2 => Act::from(503).header("retry-after", "1").later(ms(25)),
        _ => Act::from(200).later(ms(250)),
    })
}

// trap 11, trap 38
#[tokio::test(start_paused = true)]
async fn dropped_anywhere_leaves_nothing_behind() {
    let mut points = 0;
    for polls in 0.. {
        let server = slow();
        let bulkhead = Bulkhead::new(2, &server);
        let places = Arc::clone(&bulkhead.places);
        let memory = ReplayMemory::new(1 << 16);
        let limits = ReplayLimits::default().memory(memory.clone());
        let policy = policy().max_attempts(5).protocol(|http| http.replay(limits)).budget(tokens(5.0));
        let client = HedgeLayer::new(policy.clone()).layer(bulkhead);
        let upload = of_frames([Ok::<_, Error>("one"), Ok("two"), Ok("three")]);
        let request = Request::put(ONE).body(upload).unwrap().with(options().repeatable(true));
        let mut call = task::spawn(client.clone().oneshot(request));
        let mut answer = None;
        for _ in 0..polls {
            if let Poll::Ready(ended) = call.poll() {
                answer = Some(ended.unwrap());
                break;
            }
            advance(ms(10)).await;
        }
        let ended = answer.is_some();
        let sent = server.count().saturating_sub(1) as f64;
        drop((call, answer));
        let left = policy.budget_ref().balance("one.example");
        let credit = if ended { 0.1 } else { 0.0 };
        assert!((left - (5.0 - sent + credit)).abs() < 1e-6, "{polls}: {left} after {sent}");
        assert_eq!((places.available_permits(), memory.used()), (2, 0), "{polls}");
        if ended {
            break;
        }
        points += 1;
    }
    assert!(points > 100, "{points}");
}
