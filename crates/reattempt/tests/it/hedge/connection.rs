//! Tests of twenty concurrent hedged calls over one HTTP/2 connection, which may die at any stream.

use std::collections::HashSet;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::grpc::Grpc;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_replay::{ReplayLimits, ReplayMemory};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;
use tonic::body::Body;
use tonic::transport::Endpoint;
use tower::{Layer, ServiceExt};

use crate::hedge::support::{ms, tokens};

const CALLS: usize = 20;
/// Reached only by a hanging test.
const HANGS: Duration = Duration::from_secs(30);

/// The server's action on its first connection; on later ones it responds.
#[derive(Debug, Clone, Copy)]
enum Fate {
    /// Never responds to the first attempt of each path.
    HangsFirst,
    /// Drops the connection at its stream with this number.
    DiesAt(usize),
    /// Sends GOAWAY, after which the existing streams get no response.
    Leaves(usize),
}

/// Serves a connection. Reports the reason with which each stream without a response was reset.
async fn serve(socket: TcpStream, fate: Option<Fate>, resets: mpsc::UnboundedSender<Reason>) {
    let Ok(mut connection) = h2::server::handshake(socket).await else { return };
    let (mut paths, mut streams, mut hanging) = (HashSet::new(), 0, JoinSet::new());
    while let Some(Ok((request, mut reply))) = connection.accept().await {
        streams += 1;
        let first = paths.insert(request.uri().path().to_owned());
        let hangs = match fate {
            Some(Fate::DiesAt(last)) if streams >= last => return,
            Some(Fate::Leaves(last)) if streams >= last => {
                connection.abrupt_shutdown(Reason::NO_ERROR);
                true
            }
            Some(Fate::HangsFirst) => first,
            Some(_) => true,
            None => false,
        };
        if hangs {
            let resets = resets.clone();
            hanging.spawn(async move {
                let _body = request;
                if let Ok(reason) = poll_fn(|cx| reply.poll_reset(cx)).await {
                    let _ = resets.send(reason);
                }
            });
        } else {
            let head = Response::builder().header("grpc-status", "0").body(()).unwrap();
            let _ = reply.send_response(head, true);
        }
    }
}

struct Run {
    statuses: Vec<Option<String>>,
    connections: usize,
    resets: mpsc::UnboundedReceiver<Reason>,
    memory: ReplayMemory,
    balance: f64,
}

/// Makes the calls, all at once.
async fn run(policy: HedgePolicy<Grpc>, fate: Fate) -> Run {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (send, resets) = mpsc::unbounded_channel();
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let server = tokio::spawn(async move {
        let mut tasks = JoinSet::new();
        while let Ok((socket, _)) = listener.accept().await {
            let fate = (count.fetch_add(1, Ordering::SeqCst) == 0).then_some(fate);
            tasks.spawn(serve(socket, fate, send.clone()));
        }
    });
    let memory = ReplayMemory::new(1 << 20);
    let policy = policy.protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())));
    let policy = policy.budget(tokens(1000.0));
    let channel = Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy();
    let client = HedgeLayer::new(policy.clone()).layer(channel);
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let body = Body::new(Full::new(Bytes::from_static(&[7; 5000])));
        let uri = format!("http://{address}/service/{number}");
        calls.spawn(client.clone().oneshot(Request::post(uri).body(body).unwrap()));
    }
    let ended = timeout(HANGS, calls.join_all()).await;
    let ended = ended.unwrap_or_else(|_| panic!("{fate:?}: a call hangs"));
    let status = |answer: Response<_>| answer.headers()["grpc-status"].to_str().unwrap().to_owned();
    let statuses = ended.into_iter().map(|ended| ended.ok().map(status)).collect();
    let released = timeout(HANGS, async {
        while memory.used() > 0 {
            yield_now().await;
        }
    });
    assert!(released.await.is_ok(), "{fate:?}: {} bytes are still kept", memory.used());
    drop(client);
    if !matches!(fate, Fate::HangsFirst) {
        server.abort();
    }
    let balance = policy.budget_ref().balance(&address);
    Run { statuses, connections: connections.load(Ordering::SeqCst), resets, memory, balance }
}

fn policy(max_attempts: u32, delay: Duration) -> HedgePolicy<Grpc> {
    HedgePolicy::grpc().max_attempts(max_attempts).delay(delay)
}

#[tokio::test]
async fn twenty_at_once_share_one_connection() {
    let mut run = run(policy(2, ms(0)), Fate::HangsFirst).await;
    assert_eq!(run.statuses, vec![Some("0".to_owned()); CALLS]);
    assert_eq!((run.connections, run.memory.used()), (1, 0));
    for _ in 0..CALLS {
        let reason = timeout(HANGS, run.resets.recv()).await.unwrap();
        assert_eq!(reason, Some(Reason::CANCEL), "a loser");
    }
    let expected = 1000.0 - 0.9 * CALLS as f64;
    assert!((run.balance - expected).abs() < 1e-3, "{} tokens, not {expected}", run.balance);
}

/// Each attempt is lost with the first connection, and moves the next one forward.
#[tokio::test]
async fn twenty_at_once_outlive_their_connection() {
    for stream in [1, 2, 10, 19, 20] {
        for fate in [Fate::DiesAt(stream), Fate::Leaves(stream)] {
            let run = run(policy(3, Duration::from_secs(3600)), fate).await;
            assert_eq!(run.statuses, vec![Some("0".to_owned()); CALLS], "{fate:?}");
        }
    }
}

/// If all attempts are on the connection that dies, the calls still end, one way or the other.
#[tokio::test]
async fn twenty_at_once_end_with_their_connection() {
    for stream in [1, 2, 20, 21, 39, 40] {
        for fate in [Fate::DiesAt(stream), Fate::Leaves(stream)] {
            let run = run(policy(2, ms(0)), fate).await;
            let spent = 1000.0 - run.balance;
            assert!(spent <= CALLS as f64 + 1e-3, "{fate:?}: {spent}");
        }
    }
}
