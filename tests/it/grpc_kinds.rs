//! The four kinds of methods on a real tonic server, called by a generated client through the retry
//! layer.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use reattempt::report::ReportSlot;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Grpc, Report, Retry, RetryLayer, RetryPolicy, StopReason};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Code, Request, Response, Status, Streaming};
use tower::ServiceBuilder;

use echo::Text;
use echo::echo_client::EchoClient;
use echo::echo_server::{Echo, EchoServer};

use crate::support::echo;

/// A call that fails after this number of messages has been read.
struct Failure {
    after: usize,
    /// The number of messages that are answered first.
    answered: Option<usize>,
    status: Status,
}

/// Returns a failure without any answer.
fn fails(after: usize, status: Status) -> Failure {
    Failure { after, answered: None, status }
}

/// Returns a failure after the headers and this number of answered messages.
fn fails_late(after: usize, answered: usize, status: Status) -> Failure {
    Failure { after, answered: Some(answered), status }
}

/// A call as it arrived.
#[derive(Debug, Clone, Default, PartialEq)]
struct Seen {
    /// `grpc-previous-rpc-attempts`.
    previous: Option<String>,
    messages: Vec<String>,
}

/// A service that fails by its script and then echoes.
#[derive(Clone)]
struct Echoing(Arc<Book>);

struct Book {
    script: Mutex<VecDeque<Failure>>,
    seen: watch::Sender<Vec<Seen>>,
}

/// One call.
struct Arrived {
    book: Arc<Book>,
    number: usize,
    failure: Option<Failure>,
}

impl Echoing {
    fn arrived<T>(&self, request: &Request<T>) -> Arrived {
        let previous = request.metadata().get("grpc-previous-rpc-attempts");
        let previous = previous.map(|number| number.to_str().unwrap().to_owned());
        let failure = self.0.script.lock().unwrap().pop_front();
        self.0.seen.send_modify(|seen| seen.push(Seen { previous, ..Seen::default() }));
        let number = self.0.seen.borrow().len() - 1;
        Arrived { book: Arc::clone(&self.0), number, failure }
    }
}

impl Arrived {
    fn note(&self, message: Text) -> Text {
        self.book.seen.send_modify(|seen| seen[self.number].messages.push(message.text.clone()));
        message
    }

    /// Fails if the script requires it, once its messages have been read.
    async fn read(&mut self, messages: &mut Streaming<Text>) -> Result<Vec<Text>, Status> {
        let Some(failure) = self.failure.take() else { return Ok(Vec::new()) };
        let mut read = Vec::new();
        for _ in 0..failure.after {
            read.push(self.note(messages.message().await?.unwrap()));
        }
        if failure.answered.is_none() {
            return Err(failure.status);
        }
        self.failure = Some(failure);
        Ok(read)
    }

    /// Answers these messages, and fails after some of them if the script requires it.
    fn answer(
        self,
        messages: impl Stream<Item = Result<Text, Status>> + Send + 'static,
    ) -> Response<BoxStream<'static, Result<Text, Status>>> {
        let Some(Failure { answered: Some(answered), status, .. }) = self.failure else {
            return Response::new(messages.boxed());
        };
        Response::new(messages.take(answered).chain(stream::iter([Err(status)])).boxed())
    }
}

#[tonic::async_trait]
impl Echo for Echoing {
    type RepeatStream = BoxStream<'static, Result<Text, Status>>;
    type TalkStream = BoxStream<'static, Result<Text, Status>>;

    async fn say(&self, request: Request<Text>) -> Result<Response<Text>, Status> {
        let mut call = self.arrived(&request);
        let message = call.note(request.into_inner());
        match call.failure.take() {
            Some(failure) => Err(failure.status),
            None => Ok(Response::new(message)),
        }
    }

    /// Joins all messages.
    async fn gather(&self, request: Request<Streaming<Text>>) -> Result<Response<Text>, Status> {
        let mut call = self.arrived(&request);
        let mut messages = request.into_inner();
        call.read(&mut messages).await?;
        let mut all = String::new();
        while let Some(message) = messages.message().await? {
            all.push_str(&call.note(message).text);
        }
        Ok(Response::new(Text::new(all)))
    }

    /// Answers with each word.
    async fn repeat(&self, request: Request<Text>) -> Result<Response<Self::RepeatStream>, Status> {
        let mut call = self.arrived(&request);
        let message = call.note(request.into_inner());
        if let Some(failure) = call.failure.take_if(|failure| failure.answered.is_none()) {
            return Err(failure.status);
        }
        let words: Vec<_> = message.text.split(' ').map(|word| Ok(Text::new(word))).collect();
        Ok(call.answer(stream::iter(words)))
    }

    async fn talk(
        &self,
        request: Request<Streaming<Text>>,
    ) -> Result<Response<Self::TalkStream>, Status> {
        let mut call = self.arrived(&request);
        let mut messages = request.into_inner();
        let read = call.read(&mut messages).await?.into_iter().map(Ok);
        let (book, number) = (Arc::clone(&call.book), call.number);
        let noted = messages.map_ok(move |message| {
            Arrived { book: Arc::clone(&book), number, failure: None }.note(message)
        });
        Ok(call.answer(stream::iter(read).chain(noted)))
    }
}

struct Running {
    address: SocketAddr,
    seen: watch::Receiver<Vec<Seen>>,
    task: JoinHandle<()>,
}

impl Running {
    async fn start(script: impl IntoIterator<Item = Failure>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script = Mutex::new(script.into_iter().collect());
        let book = Arc::new(Book { script, seen: watch::Sender::default() });
        let seen = book.seen.subscribe();
        let server = Server::builder()
            .add_service(EchoServer::new(Echoing(book)))
            .serve_with_incoming(TcpIncoming::from(listener));
        let task = tokio::spawn(async move { server.await.unwrap() });
        Self { address, seen, task }
    }

    /// Returns the messages and the `grpc-previous-rpc-attempts` of each attempt.
    fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// Waits until attempt `number`, from 1, has sent this number of messages.
    async fn until(&self, number: usize, messages: usize) {
        let mut seen = self.seen.clone();
        let there = |seen: &Vec<Seen>| {
            seen.get(number - 1).is_some_and(|attempt| attempt.messages.len() >= messages)
        };
        seen.wait_for(there).await.unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

type Client = EchoClient<Retry<Channel, RetryPolicy<Grpc, Constant>>>;

/// Returns a client of that server without delays, and the slot of its reports.
fn client(server: &Running) -> (Client, ReportSlot) {
    let slot = ReportSlot::default();
    let channel = Endpoint::from_shared(format!("http://{}", server.address)).unwrap();
    let policy = RetryPolicy::grpc().backoff(Constant::immediate());
    let retry =
        ServiceBuilder::new().layer(RetryLayer::new(policy)).service(channel.connect_lazy());
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
    let expected = [
        sent(None, ["one ", "two "]),
        sent(Some(1), ["one "]),
        sent(Some(2), ["one ", "two ", "three"]),
    ];
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
