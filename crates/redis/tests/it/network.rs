//! Tests of the network to a store: down, stalled, slow, silent or lossy. Each retry is decided in time, by this
//! process alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use reattempt_redis::rate::Rate;
use reattempt_redis::{FleetBudget, RateStore, RedisStore};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};

use crate::server::Server;
use crate::support::{budget, retries_withheld, retry, returns};

#[tokio::test]
async fn killed_server_is_asked_again() {
    let Some(mut server) = Server::start(&[]).await else { return };
    let budget = budget(server.url());
    assert!(retry(&budget).await);
    server.kill();
    retries_withheld(&budget).await;
    server.restart().await;
    returns(&budget).await;
}

#[tokio::test]
async fn process_starts_without_its_store() {
    let Some(mut server) = Server::start(&[]).await else { return };
    server.kill();
    let budget = budget(server.url());
    retries_withheld(&budget).await;
    server.restart().await;
    returns(&budget).await;
}

#[tokio::test]
async fn stopped_server_is_asked_again() {
    let Some(server) = Server::on_port(&[]).await else { return };
    let budget = budget(server.url());
    assert!(retry(&budget).await);
    server.signal("-STOP");
    retries_withheld(&budget).await;
    assert!(budget.stats().late + budget.stats().failed > 0);
    server.signal("-CONT");
    returns(&budget).await;
}

#[tokio::test]
async fn paused_clients_decide_alone() {
    let Some(server) = Server::start(&[]).await else { return };
    let budget = budget(server.url());
    assert!(retry(&budget).await);
    server.command(&["CLIENT", "PAUSE", "4000", "ALL"]);
    retries_withheld(&budget).await;
    assert!(budget.stats().late + budget.stats().failed > 0);
    returns(&budget).await;
}

/// A proxy in front of a server. It delays replies, and drops as many as requested.
struct Proxy {
    url: String,
    delay: Arc<AtomicU64>,
    swallows: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
    /// The connections that the store has closed.
    closed: Arc<AtomicU64>,
}

impl Proxy {
    async fn start(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            url: format!("redis://{}", listener.local_addr().unwrap()),
            delay: Arc::default(),
            swallows: Arc::default(),
            connections: Arc::default(),
            closed: Arc::default(),
        };
        let (address, connections) = (server.address(), Arc::clone(&proxy.connections));
        let closed = Arc::clone(&proxy.closed);
        let (delay, swallows) = (Arc::clone(&proxy.delay), Arc::clone(&proxy.swallows));
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::Relaxed);
                let server = TcpStream::connect(&address).await.unwrap();
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = server.into_split();
                tokio::spawn(questions(from_client, to_server, Arc::clone(&closed)));
                tokio::spawn(replies(from_server, to_client, Arc::clone(&delay), Arc::clone(&swallows)));
            }
        });
        proxy
    }
}

async fn questions(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, closed: Arc<AtomicU64>) {
    let _ = tokio::io::copy(&mut from, &mut to).await;
    closed.fetch_add(1, Ordering::Relaxed);
}

async fn replies(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, delay: Arc<AtomicU64>, swallows: Arc<AtomicU64>) {
    let mut buffer = [0; 4096];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        sleep(Duration::from_millis(delay.load(Ordering::Relaxed))).await;
        let take = |left: u64| left.checked_sub(1);
        if swallows.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
            continue;
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn slow_replies_leave_processes_alone() {
    let Some(server) = Server::on_port(&[]).await else { return };
    let proxy = Proxy::start(&server).await;
    let budget = FleetBudget::new(RedisStore::new(&proxy.url).unwrap());
    assert!(retry(&budget).await);
    proxy.delay.store(200, Ordering::Relaxed);
    retries_withheld(&budget).await;
    assert!(budget.stats().late > 0);
    proxy.delay.store(0, Ordering::Relaxed);
    returns(&budget).await;
}

/// Replies after a lost one are not mistaken for others, because the connection is replaced.
// F-7
#[tokio::test]
async fn lost_reply_is_not_replaced_by_the_next() {
    let Some(server) = Server::on_port(&[]).await else { return };
    let proxy = Proxy::start(&server).await;
    let budget = budget(&proxy.url);
    assert!(retry(&budget).await);
    proxy.swallows.store(1, Ordering::Relaxed);
    let connections = proxy.connections.load(Ordering::Relaxed);
    assert!(!retry(&budget).await, "its reply is lost");
    returns(&budget).await;
    assert!(proxy.connections.load(Ordering::Relaxed) > connections);
    let (granted, stats) = (budget.stats().granted, budget.stats());
    assert!(retry(&budget).await);
    assert_eq!(budget.stats().granted, granted + 1, "{stats:?}");
}

/// A connection that swallows everything is replaced after three questions, although each waits only for a moment. It
/// is closed, although replies are missing.
#[tokio::test]
async fn silent_connection_is_replaced() {
    let Some(server) = Server::on_port(&[]).await else { return };
    let proxy = Proxy::start(&server).await;
    let store = RedisStore::new(&proxy.url).unwrap();
    let rate = Rate::new(100.try_into().unwrap(), 100.try_into().unwrap());
    assert_eq!(store.take("k", rate, 1).await.unwrap().granted, 1);
    proxy.swallows.store(1_000_000, Ordering::Relaxed);
    for _ in 0..3 {
        timeout(Duration::from_millis(20), store.take("k", rate, 1)).await.unwrap_err();
    }
    proxy.swallows.store(0, Ordering::Relaxed);
    let connections = proxy.connections.load(Ordering::Relaxed);
    assert_eq!(store.take("k", rate, 1).await.unwrap().granted, 1);
    assert_eq!(proxy.connections.load(Ordering::Relaxed), connections + 1);
    let closes = async {
        while proxy.closed.load(Ordering::Relaxed) == 0 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(10), closes).await.unwrap();
}

#[tokio::test]
async fn deaf_server_leaves_processes_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let budget = budget(&format!("redis://{}", listener.local_addr().unwrap()));
    let accepts = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            held.push(connection);
        }
    });
    retries_withheld(&budget).await;
    let stats = budget.stats();
    assert_eq!((stats.asked, stats.withheld), (1, 20), "one question was held: {stats:?}");
    accepts.abort();
}

#[tokio::test]
async fn other_protocol_leaves_processes_alone() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let budget = budget(&format!("redis://{}", listener.local_addr().unwrap()));
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            let text = b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n";
            let _ = connection.write_all(text).await;
        }
    });
    retries_withheld(&budget).await;
    assert!(budget.stats().failed > 0, "{budget:?}");
}

/// A process ends with questions unanswered, and nothing waits for them.
#[test]
fn process_stops_without_its_store() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let budget = budget(&format!("redis://{}", listener.local_addr().unwrap()));
    let permit = runtime.block_on(async { crate::support::ask(&budget).unwrap() });
    drop(runtime);
    let waker = std::task::Waker::noop();
    let answer = permit.poll_confirmed(&mut std::task::Context::from_waker(waker));
    assert_eq!(answer, std::task::Poll::Ready(true));
}
