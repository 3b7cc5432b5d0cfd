//! A tonic server that fails calls by a script.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use echo::Text;
use echo::echo_server::{Echo, EchoServer};
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt, TryStreamExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::transport::Server;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};

use crate::support::echo;

/// A call that fails after this number of messages has been read.
pub(super) struct Failure {
    pub(super) after: usize,
    /// The number of messages that are answered first.
    pub(super) answered: Option<usize>,
    pub(super) status: Status,
}

/// Returns a failure without any answer.
pub(super) fn fails(after: usize, status: Status) -> Failure {
    Failure { after, answered: None, status }
}

/// Returns a failure after the headers and this number of answered messages.
pub(super) fn fails_late(after: usize, answered: usize, status: Status) -> Failure {
    Failure { after, answered: Some(answered), status }
}

/// A call as it arrived.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Seen {
    /// `grpc-previous-rpc-attempts`.
    pub(super) previous: Option<String>,
    pub(super) messages: Vec<String>,
}

/// A service that fails by its script and then echoes.
#[derive(Clone)]
pub(super) struct Echoing(Arc<Book>);

pub(super) struct Book {
    pub(super) script: Mutex<VecDeque<Failure>>,
    pub(super) seen: watch::Sender<Vec<Seen>>,
}

/// One call.
pub(super) struct Arrived {
    pub(super) book: Arc<Book>,
    pub(super) number: usize,
    pub(super) failure: Option<Failure>,
}

impl Echoing {
    pub(super) fn arrived<T>(&self, request: &Request<T>) -> Arrived {
        let previous = request.metadata().get("grpc-previous-rpc-attempts");
        let previous = previous.map(|number| number.to_str().unwrap().to_owned());
        let failure = self.0.script.lock().unwrap().pop_front();
        self.0.seen.send_modify(|seen| seen.push(Seen { previous, ..Seen::default() }));
        let number = self.0.seen.borrow().len() - 1;
        Arrived { book: Arc::clone(&self.0), number, failure }
    }
}

impl Arrived {
    pub(super) fn note(&self, message: Text) -> Text {
        self.book.seen.send_modify(|seen| seen[self.number].messages.push(message.text.clone()));
        message
    }

    /// Fails if the script requires it, once its messages have been read.
    pub(super) async fn read(&mut self, messages: &mut Streaming<Text>) -> Result<Vec<Text>, Status> {
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
    pub(super) fn answer(
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

    async fn talk(&self, request: Request<Streaming<Text>>) -> Result<Response<Self::TalkStream>, Status> {
        let mut call = self.arrived(&request);
        let mut messages = request.into_inner();
        let read = call.read(&mut messages).await?.into_iter().map(Ok);
        let (book, number) = (Arc::clone(&call.book), call.number);
        let noted =
            messages.map_ok(move |message| Arrived { book: Arc::clone(&book), number, failure: None }.note(message));
        Ok(call.answer(stream::iter(read).chain(noted)))
    }
}

pub(super) struct Running {
    pub(super) address: SocketAddr,
    pub(super) seen: watch::Receiver<Vec<Seen>>,
    pub(super) task: JoinHandle<()>,
}

impl Running {
    pub(super) async fn start(script: impl IntoIterator<Item = Failure>) -> Self {
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
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.borrow().clone()
    }

    /// Waits until attempt `number`, from 1, has sent this number of messages.
    pub(super) async fn until(&self, number: usize, messages: usize) {
        let mut seen = self.seen.clone();
        let there = |seen: &Vec<Seen>| seen.get(number - 1).is_some_and(|attempt| attempt.messages.len() >= messages);
        seen.wait_for(there).await.unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}
