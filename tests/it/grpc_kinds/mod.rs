//! The four kinds of methods on a real tonic server, called by a generated client through the retry
//! layer.

mod server;

use echo::Text;
use echo::echo_client::EchoClient;
use futures_util::stream;
use futures_util::{Stream, StreamExt, TryStreamExt};
use reattempt::grpc::Grpc;
use reattempt::report::ReportSlot;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Report, Retry, RetryLayer, RetryPolicy, StopReason};
use tokio::sync::mpsc;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Request, Status};
use tower::ServiceBuilder;

use crate::support::echo;
use server::{Running, Seen, fails, fails_late};

type Client = EchoClient<Retry<Channel, RetryPolicy<Grpc, Constant>>>;

/// Returns a client of that server without delays, and the slot of its reports.
fn client(server: &Running) -> (Client, ReportSlot) {
    let slot = ReportSlot::default();
    let channel = Endpoint::from_shared(format!("http://{}", server.address)).unwrap();
    let policy = RetryPolicy::grpc().repeatable(true).backoff(Constant::immediate());
    let retry = ServiceBuilder::new().layer(RetryLayer::new(policy)).service(channel.connect_lazy());
    let retry = retry.with_options(CallOptions::new().report_to(&slot));
    // Messages have no size limit here.
    (EchoClient::new(retry).max_decoding_message_size(usize::MAX), slot)
}

fn busy() -> Status {
    Status::unavailable("busy")
}

/// Returns the expected record of an attempt.
fn sent<T: Into<String>>(previous: Option<u32>, messages: impl IntoIterator<Item = T>) -> Seen {
    let messages = messages.into_iter().map(Into::into).collect();
    Seen { previous: previous.map(|number| number.to_string()), messages }
}

fn texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Vec<Text> {
    texts.into_iter().map(Text::new).collect()
}

/// Returns a stream of messages that the test feeds.
fn fed() -> (mpsc::UnboundedSender<&'static str>, impl Stream<Item = Text> + Send) {
    let (feed, mut fed) = mpsc::unbounded_channel();
    (feed, stream::poll_fn(move |cx| fed.poll_recv(cx)).map(Text::new))
}

// RPH-1, TN-1
#[tokio::test]
async fn rph_1_a_unary_call_is_sent_again_whole() {
    let server = Running::start([fails(1, busy()), fails(1, busy())]).await;
    let (mut client, _) = client(&server);
    let answer = client.say(Text::new("hello")).await.unwrap();
    assert_eq!(answer.extensions().get::<Report>().unwrap().retries(), 2);
    assert_eq!(answer.into_inner(), Text::new("hello"));
    let expected = [None, Some(1), Some(2)].map(|previous| sent(previous, ["hello"]));
    assert_eq!(server.seen(), expected);
}

// TN-2
#[tokio::test]
async fn tn_2_long_message_is_sent_again_whole() {
    let server = Running::start([fails(1, busy())]).await;
    let (mut client, _) = client(&server);
    // Frames have 16 KiB, and 256 KiB are kept.
    let long: String = ('a'..='z').cycle().take(250 * 1024).collect();
    let answer = client.say(Text::new(&*long)).await.unwrap().into_inner();
    assert!(answer.text == long);
    assert_eq!(server.seen(), [sent(None, [&*long]), sent(Some(1), [&*long])]);
}

// TN-1
#[tokio::test]
async fn tn_1_server_stream_is_retried() {
    let server = Running::start([fails(1, busy())]).await;
    let (mut client, slot) = client(&server);
    let words = client.repeat(Text::new("one two three")).await.unwrap().into_inner();
    let words: Vec<_> = words.try_collect().await.unwrap();
    assert_eq!(words, texts(["one", "two", "three"]));
    assert_eq!(server.seen().len(), 2);
    assert_eq!(slot.take().unwrap().retries(), 1);
}

// TN-1, TN-2
#[tokio::test]
async fn tn_2_client_stream_is_replayed() {
    let server = Running::start([fails(2, busy()), fails(1, busy())]).await;
    let (mut client, _) = client(&server);
    let (feed, messages) = fed();
    let test = async {
        feed.send("one ").unwrap();
        feed.send("two ").unwrap();
        server.until(3, 2).await;
        // From here on the third attempt sends new messages of the caller.
        feed.send("three").unwrap();
        drop(feed);
    };
    let (answer, ()) = tokio::join!(client.gather(messages), test);
    assert_eq!(answer.unwrap().into_inner(), Text::new("one two three"));
    let expected = [sent(None, ["one ", "two "]), sent(Some(1), ["one "]), sent(Some(2), ["one ", "two ", "three"])];
    assert_eq!(server.seen(), expected);
}

/// tonic's own handle ends the stream of messages and the call, which is not retried.
#[tokio::test]
async fn stream_is_cancelled_by_its_handle() {
    let server = Running::start([]).await;
    let (mut client, slot) = client(&server);
    let (feed, messages) = fed();
    let mut request = Request::new(messages);
    let handle = request.cancellation_handle();
    // Available when the call is made, so it is read ahead.
    feed.send("one").unwrap();
    let test = async {
        server.until(1, 1).await;
        handle.cancel();
    };
    let (answer, ()) = tokio::join!(client.gather(request), test);
    assert_eq!(answer.unwrap_err().code(), Code::Cancelled);
    assert_eq!(slot.take().unwrap().retries(), 0);
    assert_eq!(server.seen(), [sent(None, ["one"])]);
}

// BUF-11, TN-1
#[tokio::test]
async fn buf_11_bidi_stream_is_replayed() {
    let server = Running::start([fails(2, busy())]).await;
    let (mut client, _) = client(&server);
    let (feed, messages) = fed();
    feed.send("one").unwrap();
    feed.send("two").unwrap();
    let mut answers = client.talk(messages).await.unwrap().into_inner();
    for expected in ["one", "two"] {
        assert_eq!(answers.message().await.unwrap().unwrap(), Text::new(expected));
    }
    for expected in ["three", "four"] {
        feed.send(expected).unwrap();
        assert_eq!(answers.message().await.unwrap().unwrap(), Text::new(expected));
    }
    drop(feed);
    assert_eq!(answers.message().await.unwrap(), None);
    let attempts = [sent(None, ["one", "two"]), sent(Some(1), ["one", "two", "three", "four"])];
    assert_eq!(server.seen(), attempts);
}

// BUF-11
#[tokio::test]
async fn buf_11_bidi_early_failure_loses_nothing() {
    let server = Running::start([fails(0, busy()), fails(0, busy())]).await;
    let (mut client, _) = client(&server);
    let answers = client.talk(stream::iter(texts(["one", "two"]))).await.unwrap().into_inner();
    let answers: Vec<_> = answers.try_collect().await.unwrap();
    assert_eq!(answers, texts(["one", "two"]));
    assert_eq!(server.seen().len(), 3);
}

// COM-1
#[tokio::test]
async fn com_1_answered_stream_is_not_retried() {
    for answered in [1, 2] {
        let server = Running::start([fails_late(2, answered, busy())]).await;
        let (mut client, slot) = client(&server);
        let mut words = client.repeat(Text::new("one two three")).await.unwrap().into_inner();
        for word in ["one", "two"].iter().take(answered) {
            assert_eq!(words.message().await.unwrap().unwrap(), Text::new(*word));
        }
        let status = words.message().await.unwrap_err();
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "busy"));
        assert_eq!(slot.take().unwrap().stop_reason(), StopReason::Succeeded);
        assert_eq!(server.seen().len(), 1);
    }
}

// BUF-2, BUF-7
#[tokio::test]
async fn buf_2_stream_over_buffer_is_sent_once() {
    let chunk: &str = &"x".repeat(64 * 1024);
    for failing in [true, false] {
        // Five chunks are above the 256 KiB that are kept.
        let script = failing.then(|| fails(5, busy()));
        let server = Running::start(script).await;
        let (mut client, slot) = client(&server);
        let answer = client.gather(stream::iter(texts([chunk; 6]))).await;
        match answer {
            Ok(answer) => assert_eq!(answer.into_inner().text.len(), 6 * chunk.len()),
            Err(status) => assert_eq!((status.code(), failing), (Code::Unavailable, true)),
        }
        let stop = if failing { StopReason::BodyNotKept } else { StopReason::Succeeded };
        assert_eq!(slot.take().unwrap().stop_reason(), stop);
        assert_eq!(server.seen().len(), 1);
    }
}

// RET-2
#[tokio::test]
async fn ret_2_each_kind_ends_with_last_status() {
    let script = || ["one", "two", "three"].map(|text| fails(1, Status::unavailable(text)));
    let messages = || stream::iter(texts(["hello"]));
    let server = Running::start((0..4).flat_map(|_| script())).await;
    let (mut client, slot) = client(&server);
    let ends = [
        client.say(Text::new("hello")).await.unwrap_err(),
        client.gather(messages()).await.unwrap_err(),
        client.repeat(Text::new("hello")).await.unwrap_err(),
        client.talk(messages()).await.unwrap_err(),
    ];
    for status in ends {
        assert_eq!((status.code(), status.message()), (Code::Unavailable, "three"));
    }
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::AttemptsExhausted);
    assert_eq!(server.seen().len(), 12);
}
