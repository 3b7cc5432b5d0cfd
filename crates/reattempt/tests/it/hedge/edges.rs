//! Tests of extreme delays, attempts, waits and bodies.

use std::io::{Error, ErrorKind};
use std::pin::Pin;
use std::sync::Mutex;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::observe::Event;
use reattempt_core::StopReason;
use reattempt_replay::{ReplayBody, ReplayLimits, ReplayMemory};
use tokio::time::advance;
use tokio_test::{assert_pending, task};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::hedge::support::{Act, Body, ONE, Server, With, answer, failing, get, ms, options, tokens, watched};
use crate::hedge::{policy, report};

#[tokio::test(start_paused = true)]
async fn delay_without_end_hedges_failures_only() {
    let endless = || policy().delay(Duration::MAX).max_elapsed(Duration::MAX);
    let server = Server::by(|_, _| Act::from(200).later(ms(10_000_000)));
    let answer = HedgeLayer::new(endless()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), server.count()), (200, 1));
    let server = Server::statuses([503, 200]);
    let answer = HedgeLayer::new(endless()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), server.count()), (200, 2));
}

// trap 19
#[tokio::test(start_paused = true)]
async fn wait_without_end_is_waited_or_refused() {
    let server = || {
        Server::by(|arrival, _| match arrival {
            1 => Act::from(503).header("retry-after", "99999999999999999999999999"),
            _ => 200.into(),
        })
    };
    let refused = server();
    let client = HedgeLayer::new(policy()).layer(refused.clone());
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 503);
    let waited = server();
    let patient = policy().max_server_delay(Duration::MAX).max_elapsed(None);
    let mut call = task::spawn(HedgeLayer::new(patient).layer(waited.clone()).oneshot(get()));
    assert_pending!(call.poll());
    advance(ms(1_000_000_000)).await;
    assert_pending!(call.poll());
    assert_eq!((refused.count(), waited.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn wait_that_is_too_long_is_named() {
    let server = Server::by(|_, _| Act::from(503).header("retry-after", "61"));
    let reasons = std::sync::Arc::new(Mutex::new(Vec::new()));
    let log = std::sync::Arc::clone(&reasons);
    let policy = policy().max_elapsed(None).observe(move |_, event| {
        if let Event::GaveUp { reason, .. } = event {
            log.lock().unwrap().push(*reason);
        }
    });
    HedgeLayer::new(policy).layer(server).oneshot(get()).await.unwrap();
    assert_eq!(*reasons.lock().unwrap(), [StopReason::ServerDelayTooLong]);
}

#[tokio::test(start_paused = true)]
async fn attempts_of_a_call_have_the_cap_too() {
    for (asked, sent) in [(0, 1), (1, 1), (u32::MAX, 5)] {
        let server = Server::by(|_, _| Act::from(200).later(ms(10_000)));
        let client = HedgeLayer::new(policy()).layer(server.clone());
        client.oneshot(get().with(options().max_attempts(asked))).await.unwrap();
        assert_eq!(server.count(), sent, "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn stopped_clock_sends_nothing_more() {
    let server = Server::by(|_, _| Act::Hang);
    let mut call = task::spawn(HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()));
    for _ in 0..1000 {
        assert_pending!(call.poll());
    }
    assert_eq!(server.count(), 1);
    // If all attempts fail at once, no more than allowed are sent.
    let server = Server::statuses([503]);
    let client = HedgeLayer::new(policy().max_attempts(5)).layer(server.clone());
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 503);
    assert_eq!(server.times(), [0; 5]);
}

#[tokio::test(start_paused = true)]
async fn quantile_without_samples_hedges_nothing() {
    let policy = HedgePolicy::http().max_attempts(5).budget(tokens(5.0));
    let server = Server::by(|arrival, _| match arrival {
        1 => ErrorKind::ConnectionReset.into(),
        2 => 503.into(),
        _ => Act::from(200).later(ms(20_000)),
    });
    let client = HedgeLayer::new(policy.clone()).layer(server.clone());
    client.clone().oneshot(get()).await.unwrap_err();
    assert_eq!(client.clone().oneshot(get()).await.unwrap().status(), 503);
    assert_eq!(client.oneshot(get()).await.unwrap().status(), 200);
    assert_eq!((server.count(), policy.current_delay()), (3, None));
}

/// A body that yields one byte per poll, or nothing at all, and never ends.
struct Trickle(&'static [u8]);

impl http_body::Body for Trickle {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(self.0)))))
    }
}

// trap 07
#[tokio::test(start_paused = true)]
async fn refused_body_without_end_is_given_up() {
    for bytes in [&b"x"[..], b"", &[7; 4096]] {
        let (body, watch) = watched(Trickle(bytes));
        let body = Mutex::new(Some(body));
        let server = Server::by(move |_, _| match body.lock().unwrap().take() {
            Some(body) => Act::Answer(answer(503, "").map(|_| body.boxed())),
            None => Act::from(200).later(ms(50)),
        });
        let answer = HedgeLayer::new(policy()).layer(server).oneshot(get()).await.unwrap();
        assert_eq!((answer.status().as_u16(), watch.is_dropped()), (200, true));
        assert!(watch.polls() <= 512, "{} polls", watch.polls());
    }
}

#[tokio::test(start_paused = true)]
async fn refused_body_that_fails_changes_nothing() {
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::Answer(answer(503, "").map(|_| failing())),
        _ => 200.into(),
    });
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((answer.status().as_u16(), report(&answer)), (200, Some((2, 2))));
}

// trap 27
#[tokio::test(start_paused = true)]
async fn winner_has_its_trailers_and_its_error() {
    let fields = HeaderMap::from_iter([(http::header::ETAG, "end".parse().unwrap())]);
    let trailers = Mutex::new(Some(fields));
    let server = Server::by(move |arrival, _| match arrival {
        1 => Act::Hang,
        2 => {
            let trailers = trailers.lock().unwrap().take().unwrap();
            let frames = [Ok(Frame::data(Bytes::from("data"))), Ok(Frame::trailers(trailers))];
            let body = StreamBody::new(futures_util::stream::iter(frames)).boxed();
            Act::Answer(answer(200, "").map(|_| body))
        }
        3 => Act::Hang,
        _ => Act::Answer(answer(200, "").map(|_| failing())),
    });
    let client = HedgeLayer::new(policy()).layer(server);
    let won = client.clone().oneshot(get()).await.unwrap().into_body().collect().await.unwrap();
    assert_eq!(won.trailers().unwrap()[http::header::ETAG], "end");
    let failed = client.oneshot(get()).await.unwrap().into_body().collect().await.unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::UnexpectedEof);
}

/// Reads this many frames of each upload, and then responds to the last attempt.
#[tokio::test(start_paused = true)]
async fn upload_without_end_is_hedged_and_let_go() {
    let memory = ReplayMemory::new(1 << 20);
    let limits = ReplayLimits::default().per_call(1 << 17).memory(memory.clone());
    let policy = policy().max_attempts(2).protocol(|http| http.replay(limits));
    let server = service_fn(|mut request: Request<ReplayBody<Trickle>>| async move {
        for _ in 0..1000 {
            request.body_mut().frame().await.unwrap()?;
        }
        if request.extensions().get::<reattempt::retry::AttemptNumber>().is_none() {
            std::future::pending::<()>().await;
        }
        Ok::<_, tower::BoxError>(Response::new(Full::<Bytes>::default()))
    });
    let mut client = HedgeLayer::new(policy.boxed_errors()).layer(server);
    let request = Request::put(ONE).body(Trickle(b"x")).unwrap().with(options().repeatable(true));
    std::future::poll_fn(|cx| client.poll_ready(cx)).await.unwrap();
    let mut call = Box::pin(client.call(request));
    let answer = call.as_mut().await.unwrap();
    assert_eq!(answer.status(), 200);
    assert_eq!(memory.used(), 0, "though the call is still held");
}

/// A body that yields one byte at a time and fails in the middle is the same for each attempt.
#[tokio::test(start_paused = true)]
async fn bytewise_upload_arrives_whole() {
    let frames = || (0..300).map(|_| Ok::<_, Error>(Frame::data(Bytes::from_static(b"x"))));
    let server = Server::by(|arrival, _| match arrival {
        1 => Act::Hang,
        2 => 503.into(),
        _ => 200.into(),
    });
    let body = StreamBody::new(futures_util::stream::iter(frames()));
    let request = Request::put(ONE).body(body).unwrap().with(options().repeatable(true));
    let answer = HedgeLayer::new(policy()).layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    for seen in server.seen() {
        assert_eq!(seen.body.unwrap().len(), 300);
    }
}

#[tokio::test(start_paused = true)]
async fn polled_after_its_end_sends_nothing() {
    let server = Server::statuses([503, 200]);
    let mut client = HedgeLayer::new(policy()).layer(server.clone());
    std::future::poll_fn(|cx| Service::<Request<Body>>::poll_ready(&mut client, cx)).await.unwrap();
    let mut call = task::spawn(client.call(get()));
    assert!(call.poll().is_ready());
    for _ in 0..3 {
        assert_pending!(call.poll());
        advance(ms(1000)).await;
    }
    assert_eq!(server.count(), 2);
}
