//! Tests of classifiers that supply a hint, and of the request that they see.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Response, StatusCode};
use reattempt::classify::{Hints, Outcome, RequestView};
use reattempt::fallback::FallbackLayer;
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{CircuitBreaker, GuardLayer};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::operation::retry_blocking;
use reattempt::{Http, RetryLayer, RetryPolicy, retry};
use reattempt_core::{Classification, ServerHint, StopReason, Verdict};
use reattempt_replay::{ReplayBody, ReplayLimits};
use tokio::time::Instant;
use tower::{Layer, ServiceExt};

use crate::calls::support::{
    Act, Policy, Server, With, get, ms, of_frames, options, policy, post, report_of, request, transient,
};

const AFTER: ServerHint = ServerHint::After(Duration::from_secs(3));

/// Returns a policy that gives every 503 this hint.
fn hinting(hint: ServerHint) -> Policy {
    policy().protocol(move |http| {
        http.classify(move |outcome: Outcome<'_>| (outcome.status()? == 503).then(|| transient(503).with_hint(hint)))
    })
}

#[tokio::test(start_paused = true)]
async fn classifier_hint_sets_delay_or_stops() {
    let exactly = ServerHint::Exactly(ms(1234));
    let rows: [(ServerHint, std::ops::RangeInclusive<u128>); 5] = [
        (ServerHint::None, 100..=100),
        (AFTER, 3000..=3301),
        (ServerHint::AtLeast(ms(700)), 700..=771),
        (exactly, 1234..=1234),
        (ServerHint::After(Duration::ZERO), 100..=100),
    ];
    for (hint, expected) in rows {
        let server = Server::statuses([503, 200]);
        RetryLayer::new(hinting(hint)).layer(server.clone()).oneshot(get()).await.unwrap();
        assert!(expected.contains(&server.times()[1]), "{hint:?}: {:?}", server.times());
    }
    let server = Server::statuses([503, 200]);
    let stopped = hinting(ServerHint::Stop);
    let response = RetryLayer::new(stopped).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (503, 1));
    assert_eq!(report_of(&response).stop_reason(), StopReason::ServerSaidStop);
}

#[tokio::test(start_paused = true)]
async fn classifier_hint_replaces_header_not_stop() {
    // The header, the classifier's hint, and the time of the retry, if there is one.
    let rows = [
        (("retry-after", "20"), ServerHint::None, Some(20_000..=22_001)),
        (("retry-after", "20"), AFTER, Some(3000..=3301)),
        (("retry-after", "20"), ServerHint::After(Duration::ZERO), Some(100..=100)),
        (("x-should-retry", "false"), AFTER, None),
        (("x-should-retry", "false"), ServerHint::None, None),
        (("retry-after", "20"), ServerHint::Stop, None),
    ];
    for ((name, value), hint, expected) in rows {
        let server = Server::by(move |arrival, _| match arrival {
            1 => Act::from(503).header(name, value),
            _ => 200.into(),
        });
        RetryLayer::new(hinting(hint)).layer(server.clone()).oneshot(get()).await.unwrap();
        let retried = server.times().get(1).copied();
        assert_eq!(retried.is_some(), expected.is_some(), "{name}: {value}, {hint:?}");
        let within = expected.zip(retried).is_none_or(|(times, at)| times.contains(&at));
        assert!(within, "{name}: {value}, {hint:?}: {retried:?}");
    }
}

/// Either side can prevent a retry, and neither can force the other to retry.
#[tokio::test(start_paused = true)]
async fn own_verdict_outranks_should_retry() {
    use Verdict::{Permanent, Success};
    for name in ["x-should-retry", "stripe-should-retry"] {
        // The status, the client's own verdict on it, the header, and the number of attempts.
        for (status, own, value, attempts) in [
            (429, None, "true", 2),
            (409, None, "true", 2),
            (429, Some(Permanent), "true", 1),
            (409, Some(Permanent), "true", 1),
            (503, Some(Permanent), "true", 1),
            (503, Some(Success), "true", 1),
            (409, Some(transient(409)), "true", 2),
            (409, Some(transient(409)), "false", 1),
            (409, Some(Verdict::not_processed()), "false", 1),
            (429, None, "false", 1),
        ] {
            let script = move |arrival, _: &http::request::Parts| match arrival {
                1 => Act::from(status).header(name, value),
                _ => 200.into(),
            };
            let code = StatusCode::from_u16(status).unwrap();
            let of_policy = policy().protocol(|http| match own {
                Some(own) => http.on_status(code, own),
                None => http,
            });
            let server = Server::by(script);
            RetryLayer::new(of_policy).layer(server.clone()).oneshot(get()).await.unwrap();
            assert_eq!(server.count(), attempts, "{status}, {own:?}, {name}: {value}");

            let of_call = own.map_or(options(), |own| options().on_status(code, own));
            let server = Server::by(script);
            let client = RetryLayer::new(policy()).layer(server.clone());
            client.oneshot(get().with(of_call)).await.unwrap();
            assert_eq!(server.count(), attempts, "{status}, {own:?}, {name}: {value}, by the call");
        }
    }
}

/// The requests that a classifier has seen, as text.
#[derive(Clone, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn note(&self, outcome: Outcome<'_>) -> Option<Verdict> {
        let words = |request: RequestView<'_>| {
            let query = request.query().unwrap_or("-");
            let tenant = request.header("X-Tenant").unwrap_or(b"-");
            let tenant = String::from_utf8_lossy(tenant);
            let (scheme, authority) = (request.scheme(), request.authority());
            let origin = (scheme.unwrap_or("-"), authority.unwrap_or("-"));
            format!("{} {origin:?} {} {query} {tenant}", request.method(), request.path())
        };
        let text = outcome.request().map_or("none".into(), words);
        self.0.lock().unwrap().push(text);
        None
    }

    fn classifier(&self) -> impl Fn(Outcome<'_>) -> Option<Verdict> + Send + Sync + use<> {
        let seen = self.clone();
        move |outcome| seen.note(outcome)
    }

    fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

const SEARCH: &str = "http://one.example:8080/search?q=rust";
const SEEN: &str = "PUT (\"http\", \"one.example:8080\") /search q=rust a";

fn search() -> http::Request<crate::calls::support::Body> {
    request("PUT", SEARCH, "hello").header("x-tenant", "a")
}

#[tokio::test(start_paused = true)]
async fn classifier_sees_request_on_each_attempt() {
    let (of_policy, of_call) = (Seen::default(), Seen::default());
    let server = Server::by(|arrival, _| match arrival {
        2 => std::io::ErrorKind::ConnectionReset.into(),
        _ => 503.into(),
    });
    let classifier = of_policy.classifier();
    let client = RetryLayer::new(policy().protocol(|http| http.classify(classifier)));
    let request = search().with(options().classify(of_call.classifier()));
    client.layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!(server.count(), 3);
    assert_eq!(of_policy.lines(), [SEEN; 3], "the last one, too");
    assert_eq!(of_call.lines(), [SEEN; 3]);
}

#[tokio::test(start_paused = true)]
async fn calls_classifier_alone_sees_last_request() {
    let seen = Seen::default();
    let server = Server::statuses([503]);
    let client = RetryLayer::new(policy().max_attempts(2)).layer(server);
    client.oneshot(search().with(options().classify(seen.classifier()))).await.unwrap();
    assert_eq!(seen.lines(), [SEEN; 2]);
}

#[tokio::test(start_paused = true)]
async fn request_that_was_not_saved_is_none() {
    let seen = Seen::default();
    let server = Server::statuses([503]);
    // The observer needs the outcome of a call that is not retried.
    let policy = policy().max_attempts(1).observe(|_, _| {});
    let policy = policy.protocol(|http| http.classify(seen.classifier()));
    RetryLayer::new(policy).layer(server).oneshot(search()).await.unwrap();
    assert_eq!(seen.lines(), ["none"]);
}

#[tokio::test(start_paused = true)]
async fn request_is_seen_if_only_its_body_is_gone() {
    let seen = Seen::default();
    let server = Server::statuses([503]);
    let policy = policy().protocol(|http| http.replay(ReplayLimits::default().per_call(1)).classify(seen.classifier()));
    let request = search().map(|_| of_frames::<std::io::Error>([Ok("hello")]));
    RetryLayer::new(policy).layer(server.clone()).oneshot(request).await.unwrap();
    assert_eq!((server.count(), seen.lines()), (1, vec![SEEN.to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn classifier_sees_request_in_stock_policy() {
    let seen = Seen::default();
    let server = Server::statuses([503]);
    let policy = policy().protocol(|http| http.classify(seen.classifier()));
    let client = tower::retry::RetryLayer::new(policy.stock()).layer(server.clone());
    let request = search().map(|body| ReplayBody::new(body, &ReplayLimits::default()));
    client.oneshot(request).await.unwrap();
    assert_eq!((server.count(), seen.lines()), (3, vec![SEEN.to_owned(); 3]));
}

#[tokio::test(start_paused = true)]
async fn rule_by_request_retries_post_to_one_path() {
    let policy = policy().protocol(|http| {
        http.classify(|outcome: Outcome<'_>| {
            let search = outcome.request()?.path() == "/search";
            (outcome.status()? == 404 && search).then(Verdict::not_processed)
        })
    });
    for (uri, attempts) in [(SEARCH, 3), ("http://one.example/order", 1)] {
        let server = Server::statuses([404]);
        let client = RetryLayer::new(policy.clone()).layer(server.clone());
        let response = client.oneshot(request("POST", uri, "")).await.unwrap();
        assert_eq!((response.status().as_u16(), server.count()), (404, attempts), "{uri}");
    }
}

#[test]
fn view_shows_no_credentials() {
    let request = request("GET", "http://me:secret@one.example/a?key=secret", "").header("authorization", "secret");
    let view = RequestView::from(&request);
    assert_eq!(format!("{view:?}"), "RequestView { method: \"GET\", path: \"/a\", .. }");
}

#[tokio::test(start_paused = true)]
async fn operation_hint_sets_delay_or_stops() {
    let began = Instant::now();
    let mut left = 2;
    let count = || {
        left -= 1;
        std::future::ready(if left == 0 { Ok(()) } else { Err("busy") })
    };
    retry(policy_of_operations(), count).classify(|_| Verdict::throttled().with_hint(AFTER)).await.unwrap();
    assert!((3000..=3301).contains(&began.elapsed().as_millis()), "{:?}", began.elapsed());

    let stopped = |_: &&str| Verdict::transient().with_hint(ServerHint::Stop);
    let error = retry(policy_of_operations(), || std::future::ready(Err::<(), _>("closed")))
        .classify(stopped)
        .await
        .unwrap_err();
    assert_eq!((error.attempts(), error.stop_reason()), (1, StopReason::ServerSaidStop));

    let mut slept = Vec::new();
    let blocking = retry_blocking(policy_of_operations(), || Err::<(), _>("busy"));
    let blocking = blocking.classify(|_| Verdict::throttled().with_hint(ServerHint::Exactly(ms(7))));
    blocking.call_with(|wait| slept.push(wait)).unwrap_err();
    assert_eq!(slept, [ms(7); 2]);
}

fn policy_of_operations() -> RetryPolicy<reattempt::operation::Operations> {
    RetryPolicy::operations().seed(1)
}

#[tokio::test(start_paused = true)]
async fn cloned_requests_take_hints() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let began = Instant::now();
    let times = Arc::clone(&sent);
    let service = tower::service_fn(move |_: u32| {
        times.lock().unwrap().push(began.elapsed().as_millis());
        std::future::ready(Ok::<_, std::io::Error>(()))
    });
    let judge = |_: Result<&(), &(dyn std::error::Error + 'static)>| -> Classification {
        Verdict::throttled().with_hint(ServerHint::Exactly(ms(40)))
    };
    let policy = RetryPolicy::cloned(judge);
    RetryLayer::new(policy).layer(service).oneshot(1).await.unwrap();
    assert_eq!(*sent.lock().unwrap(), [0, 40, 80]);
}

/// A classifier on a shared policy sees the key that was generated for the request.
#[tokio::test(start_paused = true)]
async fn classifier_sees_generated_key() {
    let keyed = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&keyed);
    let http = Http::new().generate_idempotency_keys(true).classify(move |outcome: Outcome<'_>| {
        let key = outcome.request()?.header("idempotency-key").is_some();
        noted.lock().unwrap().push(key);
        None::<Verdict>
    });
    let server = Server::statuses([503, 200]);
    RetryLayer::new(RetryPolicy::with(http)).layer(server).oneshot(post()).await.unwrap();
    assert_eq!(*keyed.lock().unwrap(), [true; 2]);
}

/// A protocol setter has the same effect on each type that holds the protocol.
#[tokio::test(start_paused = true)]
async fn setter_in_chain_changes_protocol() {
    let locked = (StatusCode::LOCKED, Verdict::not_processed());
    let retries = RetryPolicy::http().on_status(locked.0, locked.1).max_attempts(4);
    let server = Server::statuses([423, 423, 423, 200]);
    let response = RetryLayer::new(retries).layer(server.clone()).oneshot(post()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (200, 4));

    let hedges = HedgePolicy::http().on_status(locked.0, locked.1).delay(ms(60_000));
    let server = Server::statuses([423, 200]);
    let response = HedgeLayer::new(hedges).layer(server.clone()).oneshot(get()).await.unwrap();
    assert_eq!((response.status().as_u16(), server.count()), (200, 2));

    let replayed = || get().map(|body| ReplayBody::new(body, &ReplayLimits::default()));
    let breaker = CircuitBreaker::counting();
    let guard = GuardLayer::http(breaker.clone()).on_status(locked.0, locked.1);
    let server = Server::statuses([423]);
    guard.layer(server.clone()).oneshot(replayed()).await.unwrap();
    assert_eq!(breaker.counts("one.example").total_failures, 1);

    let fallback = FallbackLayer::http(|_: &_| Some(Response::default())).on_status(locked.0, locked.1);
    let server = Server::statuses([423]);
    let response = fallback.layer(server.clone()).oneshot(replayed()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
}

/// The setters on a policy create the same protocol as the protocol's own setters.
#[test]
fn chain_makes_same_protocol() {
    let own = Http::new()
        .on_status(StatusCode::LOCKED, Verdict::Permanent)
        .hints(Hints::none())
        .replay(ReplayLimits::default().per_call(1))
        .drain_limit(2)
        .refused_stream_is_proof(false)
        .generate_idempotency_keys(true)
        .trust_idempotency_keys(false);
    let chain = RetryPolicy::http()
        .on_status(StatusCode::LOCKED, Verdict::Permanent)
        .hints(Hints::none())
        .replay(ReplayLimits::default().per_call(1))
        .drain_limit(2)
        .refused_stream_is_proof(false)
        .generate_idempotency_keys(true)
        .trust_idempotency_keys(false);
    assert_eq!(format!("{chain:?}"), format!("{:?}", RetryPolicy::with(own)));
}
