//! Tests of twenty concurrent hedged calls over one HTTP/2 connection, which may die at any stream.

use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{Request, Response};
use http_body_util::Full;
use reattempt::grpc::Grpc;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt_faults::{Arrival, End, Read, Reply, Script, Server, Step};
use reattempt_replay::{ReplayLimits, ReplayMemory};
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
    /// Resets the connection at its stream with this number.
    DiesAt(u32),
    /// Sends GOAWAY, after which the existing streams get no response.
    Leaves(u32),
}

fn script(fate: Fate) -> Script<Reply> {
    let on_first = |reply| Step::new(reply).connection(1);
    let mut steps = Vec::new();
    let (last, end) = match fate {
        Fate::HangsFirst => {
            let first = |number| on_first(Reply::stall()).call(format!("POST /service/{number}"));
            return Script::new((0..CALLS).map(first)).otherwise(Reply::grpc_error(0));
        }
        Fate::DiesAt(last) => (last, Reply::reset()),
        Fate::Leaves(last) => (last, Reply::raw(go_away(2 * last - 1)).end_with(End::Close)),
    };
    if last > 1 {
        steps.push(on_first(Reply::stall()).times(last - 1));
    }
    steps.push(on_first(end.read(Read::Head)).always());
    Script::new(steps).otherwise(Reply::grpc_error(0)).may_remain()
}

/// Returns the frame GOAWAY with NO_ERROR, which includes this stream.
fn go_away(last_stream: u32) -> Vec<u8> {
    [&[0, 0, 8, 7, 0, 0, 0, 0, 0][..], &last_stream.to_be_bytes(), &[0; 4]].concat()
}

struct Run {
    statuses: Vec<Option<String>>,
    server: Server,
    memory: ReplayMemory,
    balance: f64,
}

/// Makes the calls, all at once.
async fn run(policy: HedgePolicy<Grpc>, fate: Fate) -> Run {
    let server = Server::http2(script(fate)).await.unwrap();
    let memory = ReplayMemory::new(1 << 20);
    let policy = policy.protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())));
    let policy = policy.budget(tokens(1000.0));
    let channel = Endpoint::from_shared(server.url("")).unwrap().connect_lazy();
    let client = HedgeLayer::new(policy.clone()).layer(channel);
    let mut calls = JoinSet::new();
    for number in 0..CALLS {
        let body = Body::new(Full::new(Bytes::from_static(&[7; 5000])));
        let uri = server.url(&format!("/service/{number}"));
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
    let balance = policy.budget_ref().balance(&server.address().to_string());
    Run { statuses, server, memory, balance }
}

fn policy(max_attempts: u32, delay: Duration) -> HedgePolicy<Grpc> {
    HedgePolicy::grpc().max_attempts(max_attempts).delay(delay)
}

#[tokio::test]
async fn twenty_at_once_share_one_connection() {
    let run = run(policy(2, ms(0)), Fate::HangsFirst).await;
    assert_eq!(run.statuses, vec![Some("0".to_owned()); CALLS]);
    let ledger = run.server.ledger();
    assert_eq!((ledger.connections(), run.memory.used()), (1, 0));
    let resets = |arrivals: &[Arrival]| arrivals.iter().filter_map(|arrival| arrival.reset).collect::<Vec<_>>();
    timeout(HANGS, ledger.until(|arrivals| resets(arrivals).len() == CALLS)).await.unwrap();
    assert_eq!(resets(&ledger.arrivals()), [u32::from(Reason::CANCEL); CALLS], "the losers");
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
