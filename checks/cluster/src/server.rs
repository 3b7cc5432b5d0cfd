//! One server: it answers a GET, and carries a POST or a gRPC call out by a line in the ledger.

use std::convert::Infallible;
use std::fs::{File, OpenOptions};
use std::future::ready;
use std::io::{ErrorKind, Read, Write, stdin, stdout};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::exit;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{sleep, timeout};
use tower::BoxError;

use crate::tls;

/// The header with the number of a call.
pub const CALL: &str = "x-call";

/// The time in which the attempts in flight may end after SIGTERM.
const DRAIN: Duration = Duration::from_secs(5);

/// The most streams of a connection.
const STREAMS: u32 = 400;

type Answer = UnsyncBoxBody<Bytes, Infallible>;

/// The data that all servers share, as a database would have it.
#[derive(Debug)]
struct Store {
    ledger: File,
    requests: File,
    keys: PathBuf,
    /// The time of each request.
    work: Duration,
}

/// Returns the file of the ledger in the folder of the store.
pub fn ledger(store: &Path) -> PathBuf {
    store.join("ledger")
}

/// Returns the file with a byte for each request.
pub fn requests(store: &Path) -> PathBuf {
    store.join("requests")
}

/// Returns the folder with a file for each idempotency key.
pub fn keys(store: &Path) -> PathBuf {
    store.join("keys")
}

/// Serves until SIGTERM, or until the process that has started it is gone.
///
/// The arguments are the address, the folder of the store, the milliseconds of each request, and `http` or `https`.
pub async fn run(arguments: &[String]) -> Result<(), BoxError> {
    let [address, store, work, scheme] = arguments else { return Err("server ADDRESS STORE MS SCHEME".into()) };
    let store = Path::new(store);
    let acceptor = match &**scheme {
        "https" => Some(tls::acceptor(store)?),
        _ => None,
    };
    let open = |path| OpenOptions::new().append(true).create(true).open(path);
    let (ledger, requests) = (open(ledger(store))?, open(requests(store))?);
    let work = Duration::from_millis(work.parse()?);
    // The other end of the input belongs to the process that has started this one.
    thread::spawn(|| {
        let _ended = stdin().read(&mut [0]);
        exit(1);
    });
    let store = Arc::new(Store { ledger, requests, keys: keys(store), work });
    let mut terminated = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(address.parse::<SocketAddr>()?).await?;
    writeln!(stdout(), "{}", listener.local_addr()?)?;

    let connections = GracefulShutdown::new();
    let serve = async {
        loop {
            let Ok((connection, _)) = listener.accept().await else { continue };
            let watcher = connections.watcher();
            let (store, acceptor) = (Arc::clone(&store), acceptor.clone());
            tokio::spawn(async move {
                connection.set_nodelay(true)?;
                match acceptor {
                    Some(acceptor) => serve(acceptor.accept(connection).await?, store, watcher).await,
                    None => serve(connection, store, watcher).await,
                }
            });
        }
    };
    tokio::select! {
        () = serve => {}
        _ = terminated.recv() => {}
    }
    drop(listener);
    timeout(DRAIN, connections.shutdown()).await.map_err(|_| "the drain took too long".into())
}

async fn serve<C>(
    connection: C,
    store: Arc<Store>,
    watcher: hyper_util::server::graceful::Watcher,
) -> Result<(), BoxError>
where
    C: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| answer(Arc::clone(&store), request));
    let mut builder = Builder::new(TokioExecutor::new());
    // By default hyper closes a connection with more than 20 streams that were reset before it has read them. After a
    // stall those are the attempts that have timed out, and the calls that came later would be lost with them.
    builder.http2().max_concurrent_streams(STREAMS).max_pending_accept_reset_streams(STREAMS as usize);
    let connection = builder.serve_connection(TokioIo::new(connection), service).into_owned();
    watcher.watch(connection).await
}

async fn answer(store: Arc<Store>, request: Request<Incoming>) -> Result<Response<Answer>, BoxError> {
    let (head, body) = request.into_parts();
    let is_grpc = head.headers.get(CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"));
    body.collect().await?;
    (&store.requests).write_all(b".")?;
    if head.method == Method::POST {
        let header = |name| head.headers.get(name).and_then(|value| value.to_str().ok());
        let call = header(CALL).ok_or("a POST without the number of its call")?;
        if header("idempotency-key").is_none_or(|key| store.is_new(key)) {
            // One write to a file that is opened for appending, so the lines of several servers do not mix.
            (&store.ledger).write_all(format!("{call}\n").as_bytes())?;
        }
    }
    // A server that is killed now has carried the request out, and its client cannot know.
    sleep(store.work).await;
    let mut response = Response::new(if is_grpc { empty_message() } else { Empty::new().boxed_unsync() });
    *response.status_mut() = StatusCode::OK;
    if is_grpc {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    }
    Ok(response)
}

/// Returns the body of a unary gRPC response: a message without fields, and the status OK.
fn empty_message() -> Answer {
    let status = (HeaderName::from_static("grpc-status"), HeaderValue::from_static("0"));
    let trailers = Ok(HeaderMap::from_iter([status]));
    Full::from(&[0; 5][..]).with_trailers(ready(Some(trailers))).boxed_unsync()
}

impl Store {
    /// Returns `true` for a key that no server has seen.
    fn is_new(&self, key: &str) -> bool {
        let made = File::create_new(self.keys.join(key));
        !made.is_err_and(|error| error.kind() == ErrorKind::AlreadyExists)
    }
}
