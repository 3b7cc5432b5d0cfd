//! Calls that wait in hyper-util's pool for a connection that another call opens and then gives up.

use std::collections::VecDeque;
use std::iter;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::report::ReportSlot;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Http, ReplayBody, Report, Retry, RetryBudget, RetryLayer, RetryPolicy, StopReason};
use reattempt_faults::{FaultConnector, Faults, Reply, Script, Server, Step, WireFault};
use tokio::time::timeout;
use tokio_test::task::{Spawn, spawn};
use tokio_test::{assert_pending, assert_ready};
use tower::{Layer, Service, ServiceExt};

use crate::not_processed::support::quick;

/// Reached only by a hanging test.
const HANGS: Duration = Duration::from_secs(30);

const CALLS: usize = 20;

type Hyper<B> = Client<FaultConnector<HttpConnector>, B>;

/// Returns faults for connections that are never established, followed by `others`.
fn stalling(connections: usize, others: impl IntoIterator<Item = WireFault>) -> Faults<WireFault> {
    let stalls = iter::repeat_n(WireFault::TimeOut, connections);
    Faults::new(Script::new(stalls.chain(others).map(Step::new)))
}

/// Returns a client whose calls share one connection.
fn hyper<B: Body<Data = Bytes> + Send>(faults: &Faults<WireFault>) -> Hyper<B> {
    Client::builder(TokioExecutor::new()).http2_only(true).build(faults.connector(HttpConnector::new()))
}

fn request(server: &Server, method: &str, number: usize) -> Request<Full<Bytes>> {
    let request = Request::builder().method(method).uri(server.url(&format!("/{number}")));
    request.body(Full::from("pay")).unwrap()
}

/// Makes a call, whose report goes into the slot, up to its wait for a connection.
fn begin<S, B>(client: &S, mut request: Request<B>, slot: &ReportSlot) -> Spawn<tower::util::Oneshot<S, Request<B>>>
where
    S: Service<Request<B>, Response: std::fmt::Debug, Error: std::fmt::Debug> + Clone,
{
    request.extensions_mut().insert(CallOptions::new().report_to(slot));
    let mut call = spawn(client.clone().oneshot(request));
    assert_pending!(call.poll());
    call
}

/// Begins calls, the first of which opens the connection, drops that one, and awaits the others.
async fn outcomes<S, B, R>(client: &S, request: impl Fn(usize) -> Request<B>) -> Vec<Result<Response<R>, S::Error>>
where
    S: Service<Request<B>, Response = Response<R>, Error: std::fmt::Debug> + Clone,
    R: std::fmt::Debug,
{
    let slot = ReportSlot::default();
    let mut calls = (0..=CALLS).map(|number| begin(client, request(number), &slot)).collect::<Vec<_>>();
    drop(calls.remove(0));
    let calls = futures_util::future::join_all(calls);
    timeout(HANGS, calls).await.unwrap()
}

/// The calls that waited share the next connection, and have not used up an attempt. One of them opens it and is
/// refused, which is its first attempt; for the others that is a second wait in vain, which counts.
// TR-1, trap 45
#[tokio::test]
async fn calls_that_waited_are_sent_again() {
    let server = Server::http2(Script::default()).await.unwrap();
    for method in ["GET", "POST"] {
        let faults = stalling(1, [WireFault::Refuse, WireFault::NoFault]);
        let client = RetryLayer::new(quick().max_attempts(2).budget(RetryBudget::unlimited())).layer(hyper(&faults));
        let outcomes = outcomes(&client, |number| request(&server, method, number)).await;
        assert!(outcomes.iter().all(Result::is_ok), "{method}: {outcomes:?}");
    }
    server.ledger().no_unsafe_repeat().at_most_attempts(1);
    assert_eq!(server.ledger().arrivals().len(), 2 * CALLS);
}

/// Over gRPC and in a hedged call it is the same.
// TR-1, TR-6
#[tokio::test]
async fn grpc_and_hedged_calls_are_sent_again() {
    let reply = Script::default().otherwise(Reply::grpc("done"));
    let server = Server::http2(reply).await.unwrap();
    let make = |number| request(&server, "POST", number).map(tonic::body::Body::new);

    let faults = stalling(1, [WireFault::NoFault]);
    let policy = RetryPolicy::grpc().max_attempts(1);
    let outcomes_of_grpc = outcomes(&RetryLayer::new(policy).layer(hyper(&faults)), make).await;
    let ended = |response: &Response<_>| response.headers().get("grpc-status").is_none();
    assert!(outcomes_of_grpc.iter().all(|outcome| outcome.as_ref().is_ok_and(ended)));

    let faults = stalling(1, [WireFault::NoFault]);
    let hedges = HedgePolicy::http().delay(Duration::from_secs(3600));
    let client = HedgeLayer::new(hedges).layer(hyper(&faults));
    let outcomes = outcomes(&client, |number| request(&server, "GET", number)).await;
    assert!(outcomes.iter().all(Result::is_ok), "{outcomes:?}");
}

/// Begins calls, drops the first `openers` one after the other, and returns the report of the last one.
fn after_openers(
    openers: usize,
    client: &Retry<Hyper<ReplayBody<Full<Bytes>>>, RetryPolicy<Http, Constant>>,
    request: &Request<Full<Bytes>>,
) -> Report {
    let (slot, other) = (ReportSlot::default(), ReportSlot::default());
    let mut openers = (0..openers).map(|_| begin(client, request.clone(), &other)).collect::<VecDeque<_>>();
    let mut last = begin(client, request.clone(), &slot);
    while openers.pop_front().is_some() {
        // The first of those that are left opens the next connection.
        openers.iter_mut().for_each(|call| assert_pending!(call.poll()));
        match openers.is_empty() {
            true => assert!(assert_ready!(last.poll()).is_err()),
            false => assert_pending!(last.poll()),
        }
    }
    slot.take().unwrap()
}

/// A second wait in vain is an ordinary failure, so the attempts limit them.
// TR-2, trap 45
#[tokio::test]
async fn second_wait_in_vain_is_an_attempt() {
    let server = Server::http2(Script::default()).await.unwrap();
    let faults = stalling(3, []);
    let policy = quick().backoff(Constant::immediate()).max_attempts(2);
    let client = RetryLayer::new(policy).layer(hyper(&faults));
    let report = after_openers(3, &client, &request(&server, "POST", 0));
    let attempts = report.attempts().iter().map(|attempt| (attempt.number, attempt.replacement)).collect::<Vec<_>>();
    assert_eq!(attempts, [(1, false), (1, true), (2, false)], "{report}");
    assert_eq!(report.stop_reason(), StopReason::AttemptsExhausted);
}

/// The connection may have been that of a later hop, so a POST is not sent again.
// trap 35
#[tokio::test]
async fn wait_behind_redirect_is_no_proof() {
    let server = Server::http2(Script::default()).await.unwrap();
    let faults = stalling(1, []);
    let policy = quick().protocol(|http| http.redirects_below(true));
    let client = RetryLayer::new(policy).layer(hyper(&faults));
    let report = after_openers(1, &client, &request(&server, "POST", 0));
    assert_eq!((report.attempts().len(), report.stop_reason()), (1, StopReason::EarlierHop));
}
