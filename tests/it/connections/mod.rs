//! Connections that end under many calls: each call that was not processed is repeated, at no cost and only once.

mod server;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::join_all;
use http::{Method, Request, StatusCode};
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::observe::Event;
use reattempt::report::AttemptOutcome;
use reattempt::{ReplayBody, Report, RetryLayer, RetryPolicy};
use tower::{Layer, ServiceExt};

use server::{Frames, Then};

/// The bound of a test, which only a hang exceeds.
const BOUND: Duration = Duration::from_secs(20);

/// Makes this many calls at once through hyper-util's client. Returns the reports of the successful ones.
async fn calls(server: &Frames, method: Method, calls: usize, policy: RetryPolicy) -> Vec<Option<Report>> {
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http::<ReplayBody<Full<Bytes>>>();
    let client = RetryLayer::new(policy).layer(client);
    let call = |number: usize| {
        let request = Request::builder().method(&method).uri(server.url());
        client.clone().oneshot(request.body(Full::from(number.to_string())).unwrap())
    };
    let results = tokio::time::timeout(BOUND, join_all((0..calls).map(call))).await.unwrap();
    let served = results.into_iter().flatten().filter(|response| response.status() == StatusCode::OK);
    served.map(|response| Report::of(&response).cloned()).collect()
}

/// Makes this many POSTs at once through a reqwest client without redirects. Returns the number of successful ones.
async fn posts_by_reqwest(server: &Frames, calls: usize) -> usize {
    let client = reqwest::Client::builder().http2_prior_knowledge().redirect(reqwest::redirect::Policy::none());
    let client = RetryLayer::http().layer(client.build().unwrap());
    let call = |number: usize| {
        let mut request = reqwest::Request::new(Method::POST, server.url().parse().unwrap());
        *request.body_mut() = Some(number.to_string().into());
        client.clone().oneshot(request)
    };
    let results = tokio::time::timeout(BOUND, join_all((0..calls).map(call))).await.unwrap();
    results.into_iter().flatten().filter(|response| response.status() == StatusCode::OK).count()
}

/// Carries out the first stream of the first connection, and excludes the others once all have arrived.
fn goes_away(calls: usize) -> impl Fn(usize, &[u32]) -> Then + Clone + Send + Sync {
    move |connection, waiting| match connection {
        0 if waiting.len() < calls => Then::Wait,
        0 => Then::GoAway(vec![1]),
        _ => Then::Answer(waiting.to_vec()),
    }
}

/// Refuses all but ten of the first flight, before the client knows the limit of ten.
fn takes_ten(calls: usize) -> impl Fn(usize, &[u32]) -> Then + Clone + Send + Sync {
    move |_, waiting| match waiting {
        [1, ..] if waiting.len() < calls => Then::Wait,
        [1, ..] => {
            let (answered, refused) = waiting.split_at(10);
            Then::Refuse { refused: refused.to_vec(), limit: 10, answered: answered.to_vec() }
        }
        later => Then::Answer(later.to_vec()),
    }
}

/// A GOAWAY proves that the streams above its last one were not processed, so each POST is sent again and carried out
/// once. That costs no tokens.
// C-2, field 01, trap 59
#[tokio::test]
async fn posts_above_a_goaway_all_succeed() {
    let server = Frames::start(goes_away(60)).await;
    let policy = RetryPolicy::http();
    let budget = policy.budget_ref().clone();
    let reports = calls(&server, Method::POST, 60, policy).await;
    assert_eq!((reports.len(), server.served(), server.connections()), (60, 60, 2));
    let replaced = reports.iter().flatten().map(Report::replacements).sum::<usize>();
    assert_eq!(replaced, 59);
    let lowest = budget.destinations().into_iter().map(|(_, balance)| balance).reduce(f64::min);
    assert_eq!(lowest, Some(10.0));
    let server = Frames::start(goes_away(60)).await;
    assert_eq!((posts_by_reqwest(&server, 60).await, server.served()), (60, 60));
}

/// A burst above the limit of streams, which the client does not know yet, loses no call.
// C-2, field 02, trap 59
#[tokio::test]
async fn posts_above_the_stream_limit_succeed() {
    let server = Frames::start(takes_ten(100)).await;
    let reports = calls(&server, Method::POST, 100, RetryPolicy::http()).await;
    assert_eq!((reports.len(), server.served()), (100, 100));
    let server = Frames::start(takes_ten(100)).await;
    assert_eq!((posts_by_reqwest(&server, 100).await, server.served()), (100, 100));
}

/// The calls of a connection that breaks are one event, which the report names.
// C-4, C-5, trap 60
#[tokio::test]
async fn gets_of_a_broken_connection_all_succeed() {
    let breaks = |connection: usize, waiting: &[u32]| match connection {
        0 if waiting.len() < 50 => Then::Wait,
        0 => Then::Reset,
        _ => Then::Answer(waiting.to_vec()),
    };
    let server = Frames::start(breaks).await;
    let policy = RetryPolicy::http();
    let budget = policy.budget_ref().clone();
    let reports = calls(&server, Method::GET, 50, policy).await;
    assert_eq!(reports.len(), 50);
    let texts: Vec<_> = reports.iter().flatten().map(ToString::to_string).collect();
    assert!(texts.iter().all(|text| text.contains("one of 50 attempts that were lost with their connection")));
    let firsts = reports.iter().flatten().flat_map(Report::attempts).filter(|attempt| match &attempt.outcome {
        AttemptOutcome::Failed { cause: Some(cause), .. } => cause.is_first(),
        _ => false,
    });
    assert_eq!(firsts.count(), 1);
    // Ten retries returned their tokens. Forty cost two each, and fifty successes earned a fifth each.
    let lowest = budget.destinations().into_iter().map(|(_, balance)| balance).reduce(f64::min);
    assert_eq!(lowest, Some(10.0 - 80.0 + 10.0));
}

/// Counts the failed attempts of a policy's calls.
fn counted(policy: RetryPolicy) -> (RetryPolicy, Arc<AtomicU32>) {
    let attempts = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&attempts);
    let policy = policy.observe(move |_, event| {
        if let Event::AttemptFailed { .. } = event {
            count.fetch_add(1, Ordering::Relaxed);
        }
    });
    (policy, attempts)
}

/// A server that proves for ever that it has processed nothing gets a bounded number of attempts, and no call spins or
/// hangs. It refuses every stream, excludes every stream by a GOAWAY, or resets every connection.
// C-2, CI-3
#[tokio::test]
async fn server_that_takes_nothing_is_bounded() {
    type Script = fn(usize, &[u32]) -> Then;
    let scripts: [Script; 3] = [
        |_, waiting| Then::Refuse { refused: waiting.to_vec(), limit: 100, answered: vec![] },
        |_, _| Then::GoAway(vec![]),
        |_, _| Then::Reset,
    ];
    for script in scripts {
        let server = Frames::start(script).await;
        let (policy, attempts) = counted(RetryPolicy::http());
        for _ in 0..20 {
            assert!(calls(&server, Method::POST, 10, policy.clone()).await.is_empty());
        }
        assert_eq!(server.served(), 0);
        let attempts = attempts.load(Ordering::Relaxed);
        // 200 first attempts; each flight of ten is replaced at most once for each kind, and only three times without a
        // success if the server had the request. At most ten retries have a token.
        assert!((200..=200 + 200 + 30 + 10).contains(&attempts), "{attempts}");
    }
}

/// A server that closes each connection before it sends its settings has accepted nothing, so the calls end with its
/// error after a bounded number of attempts.
#[tokio::test]
async fn server_that_closes_at_once_is_bounded() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let accepting = tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    let (policy, attempts) = counted(RetryPolicy::http());
    let client = Client::builder(TokioExecutor::new()).http2_only(true).build_http::<ReplayBody<Full<Bytes>>>();
    let client = RetryLayer::new(policy).layer(client);
    for _ in 0..20 {
        let call = |_| client.clone().oneshot(Request::post(&url).body(Full::from("order")).unwrap());
        let results = tokio::time::timeout(BOUND, join_all((0..10).map(call))).await.unwrap();
        assert!(results.iter().all(Result::is_err));
    }
    accepting.abort();
    let attempts = attempts.load(Ordering::Relaxed);
    assert!((200..=200 + 2 * 200 + 266).contains(&attempts), "{attempts}");
}
