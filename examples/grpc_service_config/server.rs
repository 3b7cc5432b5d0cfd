//! The echo service, which fails according to a script for each method, and prints each attempt.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream};
use tokio::net::TcpListener;
use tonic::transport::server::TcpIncoming;
use tonic::{Request, Response, Status, Streaming};
use tower::BoxError;

use crate::echo::Text;
use crate::echo::echo_server::{Echo, EchoServer};

pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    script: Arc<Script>,
}

/// The number of calls of each method so far.
#[derive(Default)]
struct Script {
    attempts: AtomicUsize,
    said: AtomicUsize,
    repeated: AtomicUsize,
}

impl Server {
    pub(crate) async fn start() -> Result<Self, BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let script = Arc::<Script>::default();
        let server = tonic::transport::Server::builder()
            .add_service(EchoServer::from_arc(Arc::new(Failing(Arc::clone(&script)))));
        tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
        Ok(Self { address, script })
    }

    /// Returns the number of attempts since the last call of this function.
    pub(crate) fn take_attempts(&self) -> usize {
        self.script.attempts.swap(0, Ordering::Relaxed)
    }

    /// Restarts the script of Say.
    pub(crate) fn fail_again(&self) {
        self.script.said.store(0, Ordering::Relaxed);
    }
}

struct Failing(Arc<Script>);

impl Failing {
    fn arrived<T>(&self, method: &str, request: &Request<T>) {
        self.0.attempts.fetch_add(1, Ordering::Relaxed);
        let field = |name| request.metadata().get(name).and_then(|value| value.to_str().ok());
        let previous = field("grpc-previous-rpc-attempts").unwrap_or("none");
        let timeout = field("grpc-timeout").unwrap_or("none");
        println!("  server: {method}, previous attempts: {previous}, timeout: {timeout}");
    }
}

#[tonic::async_trait]
impl Echo for Failing {
    type RepeatStream = BoxStream<'static, Result<Text, Status>>;
    type TalkStream = BoxStream<'static, Result<Text, Status>>;

    async fn say(&self, request: Request<Text>) -> Result<Response<Text>, Status> {
        self.arrived("Say", &request);
        match self.0.said.fetch_add(1, Ordering::Relaxed) {
            0 | 1 => Err(Status::unavailable("warming up")),
            _ => Ok(Response::new(request.into_inner())),
        }
    }

    async fn gather(&self, request: Request<Streaming<Text>>) -> Result<Response<Text>, Status> {
        self.arrived("Gather", &request);
        Err(Status::unavailable("closed today"))
    }

    async fn repeat(&self, request: Request<Text>) -> Result<Response<Self::RepeatStream>, Status> {
        self.arrived("Repeat", &request);
        if self.0.repeated.fetch_add(1, Ordering::Relaxed) == 0 {
            // Longer than any deadline of this call.
            std::future::pending::<()>().await;
        }
        let words: Vec<_> = request.into_inner().text.split(' ').map(|word| Ok(Text::new(word))).collect();
        Ok(Response::new(stream::iter(words).boxed()))
    }

    async fn talk(&self, request: Request<Streaming<Text>>) -> Result<Response<Self::TalkStream>, Status> {
        self.arrived("Talk", &request);
        Ok(Response::new(request.into_inner().boxed()))
    }
}
