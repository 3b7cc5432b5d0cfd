//! Pools whose idle connections are all dead: retries on new connections.

use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::fresh::FreshRetries;
use reattempt::schedule::Constant;
use reattempt::standard::StandardLayer;
use reattempt::{Http, ReplayBody, RetryLayer, RetryPolicy, check};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Barrier;
use tower::util::BoxCloneService;
use tower::{BoxError, Layer, ServiceExt, service_fn};

use crate::support::reset_when_dropped;

/// The bound of a test, which only a hang exceeds.
const BOUND: Duration = Duration::from_secs(30);

/// The way in which old connections end.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Dies {
    /// The next byte is answered by a reset.
    Reset,
    /// The next request is answered by a 408, as by a server that has just closed its idle connections.
    RequestTimeout,
}

/// A server of HTTP/1 whose first connections serve one request each, all at the same time, and then die.
struct Server {
    address: SocketAddr,
    /// The number of times that each request was carried out, by its path.
    done: Arc<Mutex<BTreeMap<String, usize>>>,
}

impl Server {
    async fn start(idle: usize, dies: Dies) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (all, done) = (Arc::new(Barrier::new(idle)), Arc::<Mutex<BTreeMap<_, _>>>::default());
        let ledger = Arc::clone(&done);
        tokio::spawn(async move {
            for number in 0.. {
                let (connection, _) = listener.accept().await.unwrap();
                let (all, ledger) = (Arc::clone(&all), Arc::clone(&ledger));
                tokio::spawn(async move {
                    match number < idle {
                        true => Self::die(connection, &all, dies).await,
                        false => Self::live(connection, &ledger).await,
                    }
                });
            }
        });
        Self { address, done }
    }

    async fn die(mut connection: TcpStream, all: &Barrier, dies: Dies) {
        read_head(&mut connection).await;
        all.wait().await;
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        match dies {
            Dies::Reset => {
                let _ = connection.peek(&mut [0]).await;
                let _ = reset_when_dropped(&connection);
            }
            Dies::RequestTimeout => {
                if read_head(&mut connection).await.is_some() {
                    let timeout = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
                    connection.write_all(timeout).await.unwrap();
                }
            }
        }
    }

    async fn live(mut connection: TcpStream, ledger: &Mutex<BTreeMap<String, usize>>) {
        while let Some(path) = read_head(&mut connection).await {
            *ledger.lock().unwrap().entry(path).or_default() += 1;
            connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").await.unwrap();
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }
}

/// Reads the head of a request without a body, and returns its path.
async fn read_head(connection: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(connection.read_u8().await.ok()?);
    }
    Some(String::from_utf8(head).unwrap().split(' ').nth(1)?.to_owned())
}

/// Returns the default policy, its budget included, without a delay.
fn policy() -> RetryPolicy<Http, Constant> {
    RetryPolicy::http().backoff(Constant::immediate())
}

/// A client that sends a request without a body, and returns the status once the body has ended.
type Sends = BoxCloneService<(Method, String), StatusCode, BoxError>;

fn request((method, uri): (Method, String)) -> Request<Full<Bytes>> {
    Request::builder().method(method).uri(uri).body(Full::default()).unwrap()
}

fn hyper_client(max_idle: usize) -> Client<HttpConnector, ReplayBody<Full<Bytes>>> {
    Client::builder(TokioExecutor::new()).pool_max_idle_per_host(max_idle).build_http()
}

macro_rules! boxed {
    ($client:expr, $request:expr) => {{
        let client = $client;
        BoxCloneService::new(service_fn(move |sent| {
            let client = client.clone();
            async move {
                let response = client.oneshot($request(sent)).await.map_err(Into::<BoxError>::into)?;
                let response = Response::from(response);
                let status = response.status();
                response.into_body().collect().await.map_err(Into::<BoxError>::into)?;
                Ok(status)
            }
        }))
    }};
}

fn of_hyper() -> FreshRetries<Client<HttpConnector, ReplayBody<Full<Bytes>>>> {
    FreshRetries::new(hyper_client(usize::MAX), hyper_client(0))
}

fn reqwest_client(max_idle: usize) -> reqwest::Client {
    reqwest::Client::builder().no_proxy().pool_max_idle_per_host(max_idle).build().unwrap()
}

fn reqwest_request((method, uri): (Method, String)) -> reqwest::Request {
    reqwest::Request::new(method, uri.parse().unwrap())
}

fn by_hyper() -> Sends {
    boxed!(RetryLayer::new(policy()).layer(of_hyper()), request)
}

fn by_standard_stack() -> Sends {
    boxed!(StandardLayer::http().retry(policy().boxed_errors()).layer(of_hyper()), request)
}

fn by_reqwest() -> Sends {
    boxed!(
        RetryLayer::new(policy()).layer(FreshRetries::new(reqwest_client(usize::MAX), reqwest_client(0))),
        reqwest_request
    )
}

fn by_the_pool_alone() -> Sends {
    boxed!(RetryLayer::new(policy()).layer(hyper_client(usize::MAX)), request)
}

/// Fills the pool with dead connections, and then makes a hundred calls one after another. Returns the number of those
/// that failed, and the server.
async fn failures(client: Sends, method: Method, idle: usize, dies: Dies) -> (usize, Server) {
    let server = Server::start(idle, dies).await;
    let calls = async {
        let first = (0..idle).map(|_| client.clone().oneshot((Method::GET, server.url("first"))));
        for status in join_all(first).await {
            assert_eq!(status.unwrap(), StatusCode::OK);
        }
        let mut failed = 0;
        for number in 0..100 {
            let status = client.clone().oneshot((method.clone(), server.url(&number.to_string()))).await;
            failed += usize::from(!status.is_ok_and(|status| status.is_success()));
        }
        failed
    };
    (tokio::time::timeout(BOUND, calls).await.unwrap(), server)
}

// field 06
#[tokio::test]
async fn dead_pool_costs_at_most_one_get() {
    for dies in [Dies::Reset, Dies::RequestTimeout] {
        for idle in [4, 8, 16, 64] {
            for (name, client) in
                [("hyper-util", by_hyper()), ("standard stack", by_standard_stack()), ("reqwest", by_reqwest())]
            {
                let (failed, _) = failures(client, Method::GET, idle, dies).await;
                assert!(failed <= 1, "{name}: {failed} failed of 100 after {idle} × {dies:?}");
            }
        }
        for idle in [4, 8, 16, 64] {
            let (failed, _) = failures(by_the_pool_alone(), Method::GET, idle, dies).await;
            assert!(failed > 0, "the pool alone is the control: {failed} after {idle} × {dies:?}");
        }
    }
}

/// The server may have carried out a POST before the connection was lost.
// field 06, trap 24
#[tokio::test]
async fn dead_pool_repeats_no_post() {
    for dies in [Dies::Reset, Dies::RequestTimeout] {
        for client in [by_hyper(), by_reqwest()] {
            let (failed, server) = failures(client, Method::POST, 8, dies).await;
            let done = server.done.lock().unwrap();
            assert_eq!((failed, done.len()), (8, 92), "after {dies:?}");
            assert!(done.values().all(|times| *times == 1), "{done:?}");
        }
    }
}

/// The outcomes of a scripted client, one for each attempt.
type Script = &'static [Result<(u16, Version), ErrorKind>];

/// Makes calls until the pooled client's script is used up. Returns which client sent each attempt.
async fn senders(script: Script, of_fresh: Script) -> String {
    let log = Arc::new(Mutex::new(String::new()));
    let client = |name: char, script: Script| {
        let (log, next) = (Arc::clone(&log), Arc::new(AtomicUsize::new(0)));
        service_fn(move |_: Request<ReplayBody<Full<Bytes>>>| -> Ready<Result<Response<Full<Bytes>>, Error>> {
            log.lock().unwrap().push(name);
            ready(
                match script.get(next.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or(Ok((200, Version::HTTP_11))) {
                    Ok((status, version)) => {
                        Ok(Response::builder().status(status).version(version).body(Full::default()).unwrap())
                    }
                    Err(kind) => Err(kind.into()),
                },
            )
        })
    };
    let client = RetryLayer::new(policy()).layer(FreshRetries::new(client('p', script), client('f', of_fresh)));
    check::<Request<Full<Bytes>>, _>(&client);
    for _ in 0..2 {
        let _ = client.clone().oneshot(request((Method::GET, "http://one.example/".to_owned()))).await;
    }
    Arc::try_unwrap(log).map_or_else(|log| log.lock().unwrap().clone(), |log| log.into_inner().unwrap())
}

/// Only a loss or a 408 over HTTP/1 is followed by a new connection, and only the next attempt.
// field 06
#[tokio::test]
async fn new_connection_only_after_a_loss() {
    const OK: Result<(u16, Version), ErrorKind> = Ok((200, Version::HTTP_11));
    const LOST: Result<(u16, Version), ErrorKind> = Err(ErrorKind::ConnectionReset);
    let cases: [(Script, Script, &str); 12] = [
        (&[OK, LOST], &[], "ppf"),
        (&[OK, Err(ErrorKind::BrokenPipe)], &[], "ppf"),
        (&[OK, Ok((408, Version::HTTP_11))], &[], "ppf"),
        (&[OK, Ok((503, Version::HTTP_11))], &[], "ppp"),
        (&[OK, Ok((429, Version::HTTP_11))], &[], "ppp"),
        (&[OK, Err(ErrorKind::ConnectionRefused)], &[], "ppp"),
        (&[OK, Err(ErrorKind::TimedOut)], &[], "ppp"),
        (&[OK, LOST], &[Ok((503, Version::HTTP_11))], "ppfp"),
        (&[OK, LOST], &[LOST], "ppff"),
        // Without a response there was no connection to reuse.
        (&[LOST], &[], "ppp"),
        (&[Ok((200, Version::HTTP_2)), LOST], &[], "ppp"),
        (&[Ok((200, Version::HTTP_2)), Ok((408, Version::HTTP_2))], &[], "ppp"),
    ];
    for (script, of_fresh, expected) in cases {
        assert_eq!(senders(script, of_fresh).await, expected, "{script:?}, {of_fresh:?}");
    }
}
