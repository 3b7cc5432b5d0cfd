//! Tests of request bodies over retries.

use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body as _;
use http_body_util::{BodyExt, Empty, StreamBody};
use reattempt::RetryLayer;
use reattempt::retry::AttemptNumber;
use reattempt_core::StopReason;
use reattempt_replay::{ReplayBody, ReplayError, ReplayLimits, ReplayMemory};
use tokio_test::{assert_pending, assert_ready, task};
use tower::{Layer, ServiceExt, service_fn};

use crate::calls::support::{Act, Body, ONE, Server, get, of_frames, policy, put, report_of, request, watched};

fn streamed<B>(body: B) -> Request<B> {
    Request::put(ONE).body(body).unwrap()
}

#[tokio::test(start_paused = true)]
async fn streamed_body_is_whole_on_every_attempt() {
    let server = Server::statuses([503, 503, 200]);
    let body = of_frames::<io::Error>([Ok("one "), Ok(""), Ok("two "), Ok("three")]);
    RetryLayer::new(policy()).layer(server.clone()).oneshot(streamed(body)).await.unwrap();
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body.unwrap()).collect();
    assert_eq!(bodies, ["one two three"; 3]);
}

#[tokio::test(start_paused = true)]
async fn the_callers_body_is_read_once() {
    let server = Server::statuses([503, 503, 200]);
    let (body, watch) = watched(of_frames::<io::Error>([Ok("one"), Ok("two")]));
    RetryLayer::new(policy()).layer(server).oneshot(streamed(body)).await.unwrap();
    assert_eq!(watch.polls(), 3);
    assert!(watch.is_dropped());
}

#[tokio::test(start_paused = true)]
async fn length_of_body_is_known_on_every_attempt() {
    let lengths = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&lengths);
    let inner = service_fn(move |request: Request<ReplayBody<Body>>| {
        noted.lock().unwrap().push((request.body().size_hint().exact(), request.body().is_end_stream()));
        async {
            request.into_body().collect().await.unwrap();
            Ok::<_, io::Error>(Response::builder().status(503).body(Empty::<Bytes>::new()).unwrap())
        }
    });
    let client = RetryLayer::new(policy()).layer(inner);
    client.clone().oneshot(put()).await.unwrap();
    client.oneshot(get()).await.unwrap();
    assert_eq!(lengths.lock().unwrap()[..3], [(Some(5), false); 3]);
    assert_eq!(lengths.lock().unwrap()[3..], [(Some(0), true); 3]);
}

// trap 04
#[tokio::test(start_paused = true)]
async fn body_over_cap_is_sent_once() {
    let server = Server::statuses([503]);
    let limits = ReplayLimits::default().per_call(40);
    let client = RetryLayer::new(policy().protocol(|http| http.replay(limits))).layer(server.clone());
    let body = of_frames::<io::Error>([Ok("0123456789"), Ok("this is what does not fit any more")]);
    let response = client.clone().oneshot(streamed(body)).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    assert_eq!(report_of(&response).stop_reason(), StopReason::BodyNotKept);
    assert_eq!(server.seen()[0].body.as_ref().unwrap().len(), 44, "sent whole all the same");
    client.oneshot(request("PUT", ONE, "this fits")).await.unwrap();
    assert_eq!(server.count(), 4);
}

// trap 04
#[tokio::test(start_paused = true)]
async fn bodiless_retries_where_no_body_is_kept() {
    let server = Server::statuses([503]);
    let limits = ReplayLimits::default().per_call(0);
    let client = RetryLayer::new(policy().protocol(|http| http.replay(limits))).layer(server.clone());
    assert_ready!(task::spawn(client.clone().oneshot(put())).poll()).unwrap();
    assert_eq!(server.count(), 1);
    client.oneshot(get()).await.unwrap();
    assert_eq!(server.count(), 4);
}

/// A single-buffer body is kept whole, even inside a type that is not known to be in memory.
// trap 32
#[tokio::test(start_paused = true)]
async fn axum_body_of_one_buffer_is_retried() {
    let length = 1 << 20;
    for (bound, attempts, used) in [(4 << 20, 3, vec![0, length, length]), (1 << 20, 1, vec![0])] {
        let memory = ReplayMemory::new(bound);
        let noted = Arc::new(Mutex::new(Vec::new()));
        let (held, seen) = (memory.clone(), Arc::clone(&noted));
        let server = Server::by(move |_, _| {
            seen.lock().unwrap().push(held.used());
            503.into()
        });
        let limits = ReplayLimits::default().memory(memory.clone());
        let client = RetryLayer::new(policy().protocol(|http| http.replay(limits))).layer(server.clone());
        let body = axum::body::Body::from(vec![b'x'; length]);
        let response = client.oneshot(streamed(body)).await.unwrap();
        assert_eq!((response.status().as_u16(), server.count()), (503, attempts));
        assert!(server.seen().iter().all(|seen| seen.body.as_ref().unwrap().len() == length));
        assert_eq!((noted.lock().unwrap().clone(), memory.used()), (used, 0));
        let reason = report_of(&response).stop_reason();
        assert_eq!(reason == StopReason::BodyNotKept, attempts == 1);
    }
}

#[tokio::test(start_paused = true)]
async fn unread_body_over_cap_is_retried() {
    let bodies = Mutex::new(Vec::new());
    let inner = service_fn(|request: Request<ReplayBody<Body>>| async {
        bodies.lock().unwrap().push(request.into_body());
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        Err::<Response<Empty<Bytes>>, _>(refused)
    });
    let limits = ReplayLimits::default().per_call(1);
    let client = RetryLayer::new(policy().protocol(|http| http.replay(limits))).layer(inner);
    client.oneshot(put()).await.unwrap_err();
    assert_eq!(bodies.lock().unwrap().len(), 3);
    let last = bodies.into_inner().unwrap().pop().unwrap();
    assert_eq!(last.collect().await.unwrap().to_bytes(), "hello", "and the last is whole");
}

#[tokio::test(start_paused = true)]
async fn retry_before_first_byte_duplicates_none() {
    let server = Server::statuses([200]);
    let refused = Arc::new(Mutex::new(0));
    let count = Arc::clone(&refused);
    let second = server.clone();
    let inner = service_fn(move |request: Request<ReplayBody<_>>| {
        let first = std::mem::replace(&mut *count.lock().unwrap(), 1) == 0;
        let server = second.clone();
        async move {
            if first {
                return Err(crate::calls::support::Broken::new(0, io::Error::from(io::ErrorKind::ConnectionRefused)));
            }
            server.oneshot(request).await
        }
    });
    let body = of_frames::<io::Error>([Ok("one "), Ok("two "), Ok("three")]);
    RetryLayer::new(policy()).layer(inner).oneshot(streamed(body)).await.unwrap();
    assert_eq!(*refused.lock().unwrap(), 1);
    assert_eq!(server.seen()[0].body.as_deref(), Some(&b"one two three"[..]));
}

// trap 02
#[tokio::test(start_paused = true)]
async fn early_answer_cancels_upload_for_retry() {
    let (send, mut receive) = tokio::sync::mpsc::unbounded_channel::<&'static str>();
    let frames = futures_util::stream::poll_fn(move |cx| {
        receive.poll_recv(cx).map(|data| data.map(|data| Ok::<_, io::Error>(http_body::Frame::data(Bytes::from(data)))))
    });
    // The first attempt reads one frame and gets a response while the rest of its upload continues.
    let (hand_over, mut uploads) = tokio::sync::mpsc::unbounded_channel();
    let inner = service_fn(move |request: Request<ReplayBody<_>>| {
        let retry = request.extensions().get::<AttemptNumber>().is_some();
        let hand_over = hand_over.clone();
        async move {
            let mut body = Box::pin(request.into_body());
            if retry {
                assert_eq!(body.collect().await.unwrap().to_bytes(), "one two ");
                return Ok::<_, io::Error>(Response::new(Empty::<Bytes>::new()));
            }
            body.frame().await.unwrap().unwrap();
            hand_over.send(body).unwrap();
            Ok(Response::builder().status(503).body(Empty::new()).unwrap())
        }
    });
    send.send("one ").unwrap();
    let client = RetryLayer::new(policy()).layer(inner);
    let mut call = task::spawn(client.oneshot(streamed(StreamBody::new(frames))));
    assert_pending!(call.poll());
    let mut upload = uploads.try_recv().unwrap();
    let error = assert_ready!(task::spawn(upload.frame()).poll()).unwrap().unwrap_err();
    assert!(matches!(error.downcast_ref(), Some(ReplayError::Superseded)), "{error}");
    tokio::time::advance(std::time::Duration::from_millis(100)).await;
    assert_pending!(call.poll());
    send.send("two ").unwrap();
    drop(send);
    assert_eq!(call.await.unwrap().status(), 200);
}

#[tokio::test(start_paused = true)]
async fn error_of_callers_body_is_not_retried() {
    // The server's error contains "reset", because a client whose upload broke off reports it that way.
    let server = Server::by(|_, _| Act::from(200));
    let reset = io::Error::from(io::ErrorKind::ConnectionReset);
    let body = of_frames([Ok("one"), Err(reset)]);
    let error = RetryLayer::new(policy()).layer(server.clone()).oneshot(streamed(body)).await.unwrap_err();
    assert_eq!((error.attempt, server.count()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn body_error_on_retry_ends_call() {
    let read = Arc::new(Mutex::new(0));
    let noted = Arc::clone(&read);
    let inner = service_fn(move |request: Request<ReplayBody<_>>| {
        let mut attempts = noted.lock().unwrap();
        *attempts += 1;
        let first = *attempts == 1;
        async move {
            let mut body = Box::pin(request.into_body());
            body.frame().await.unwrap().unwrap();
            if !first {
                body.frame().await.unwrap().unwrap_err();
            }
            Err::<Response<Empty<Bytes>>, _>(io::Error::from(io::ErrorKind::ConnectionReset))
        }
    });
    let body = of_frames([Ok("one"), Err(io::Error::other("mine"))]);
    let client = RetryLayer::new(policy().max_attempts(5)).layer(inner);
    client.oneshot(streamed(body)).await.unwrap_err();
    assert_eq!(*read.lock().unwrap(), 2);
}

/// A body of five bytes that can be polled only inside a runtime.
#[derive(Default)]
struct InRuntime {
    read: bool,
}

impl http_body::Body for InRuntime {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<io::Result<http_body::Frame<Bytes>>>> {
        let _panics_outside = tokio::runtime::Handle::current();
        let first = !std::mem::replace(&mut self.read, true);
        std::task::Poll::Ready(first.then(|| Ok(http_body::Frame::data(Bytes::from("hello")))))
    }

    fn size_hint(&self) -> http_body::SizeHint {
        http_body::SizeHint::with_exact(if self.read { 0 } else { 5 })
    }
}

// trap 41
#[test]
fn body_is_not_polled_by_call() {
    use std::task::{Context, Waker};
    use tower::Service;

    let server = Server::statuses([503, 200]);
    let mut client = RetryLayer::new(policy()).layer(server.clone());
    assert!(Service::<Request<InRuntime>>::poll_ready(&mut client, &mut Context::from_waker(Waker::noop())).is_ready());
    let call = client.call(streamed(InRuntime::default()));
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true);
    assert_eq!(runtime.build().unwrap().block_on(call).unwrap().status(), 200);
    let bodies: Vec<_> = server.seen().into_iter().map(|seen| seen.body.unwrap()).collect();
    assert_eq!(bodies, ["hello"; 2]);
}
