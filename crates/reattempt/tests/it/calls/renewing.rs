//! Tests of the documented recipe for what the caller renews: a token that dies under many calls is renewed once.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, StatusCode};
use reattempt::guard::handle::CircuitBreakerExt;
use reattempt::guard::{Bulkhead, CircuitBreaker};
use reattempt::retry::{AttemptContext, Carried};
use reattempt::schedule::FailureKind;
use reattempt::standard::StandardLayer;
use reattempt::{RetryLayer, RetryPolicy, Verdict};
use tokio::sync::{Barrier, Mutex};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::Layer;

use crate::calls::support::{Act, Server, get, ms, post};

/// The server's valid token, the client's token, and the number of renewals. All tokens are numbers.
#[derive(Clone, Default)]
pub(crate) struct Tokens {
    pub(crate) valid: Arc<AtomicU64>,
    own: Arc<Mutex<u64>>,
    renewals: Arc<AtomicU64>,
    takes: Duration,
}

impl Tokens {
    fn taking(takes: Duration) -> Self {
        Self { takes, ..Self::default() }
    }

    pub(crate) fn renewals(&self) -> u64 {
        self.renewals.load(Ordering::SeqCst)
    }

    pub(crate) fn accepts(&self, headers: &HeaderMap) -> bool {
        headers[AUTHORIZATION] == HeaderValue::from(self.valid.load(Ordering::SeqCst))
    }

    /// The hook of the recipe.
    pub(crate) fn hook(&self) -> impl for<'a> Fn(&'a mut Parts, AttemptContext) -> Hook<'a> + use<> {
        let tokens = self.clone();
        move |head: &mut Parts, attempt: AttemptContext| {
            let tokens = tokens.clone();
            Box::pin(async move {
                // New calls wait here while a token is being renewed.
                let mut token = tokens.own.lock().await;
                let is_stale = attempt.cause.is_some_and(|cause| cause.kind() == FailureKind::Stale);
                if is_stale && attempt.carried() == Some(&*token) {
                    sleep(tokens.takes).await;
                    tokens.renewals.fetch_add(1, Ordering::SeqCst);
                    *token = tokens.valid.load(Ordering::SeqCst);
                }
                head.headers.insert(AUTHORIZATION, HeaderValue::from(*token));
                head.extensions.insert(Carried::new(*token));
            })
        }
    }
}

type Hook<'a> = Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// Returns a server that answers after 10 ms, and then checks the token that the request was sent with.
fn server(tokens: &Tokens) -> Server {
    let tokens = tokens.clone();
    Server::by(move |_, head| {
        let status = if tokens.accepts(&head.headers) { 200 } else { 401 };
        assert!(head.extensions.get::<Carried>().is_none(), "the value is not sent");
        Act::from(status).later(ms(10))
    })
}

/// The default budget grants the retries of all calls whose token died, and the breaker counts them as served.
// C-16, trap 60, field 05
#[tokio::test(start_paused = true)]
async fn token_that_dies_is_renewed_once() {
    for (takes, is_post) in [(Duration::ZERO, false), (ms(20), false), (ms(20), true)] {
        let tokens = Tokens::taking(takes);
        let server = server(&tokens);
        let retries = RetryPolicy::http().seed(1).before_attempt(tokens.hook());
        let retries = retries.protocol(|http| http.on_status(StatusCode::UNAUTHORIZED, Verdict::renew()));
        let breaker = CircuitBreaker::rate().seed(1);
        let stack = StandardLayer::http().retry(retries.boxed_errors());
        let client = stack.limits(breaker.clone(), Bulkhead::new(64)).layer(server.clone());
        let call = move || {
            let client = client.clone();
            let request = if is_post { post() } else { get() };
            async move { client.send(request).await.unwrap().status() == 200 }
        };
        assert!(call().await);
        tokens.valid.store(7, Ordering::SeqCst);
        let mut calls = JoinSet::new();
        for _ in 0..30 {
            calls.spawn(call());
        }
        // New calls arrive while the token is being renewed.
        for _ in 0..10 {
            sleep(ms(4)).await;
            calls.spawn(call());
        }
        assert!(calls.join_all().await.into_iter().all(|served| served), "renewed in {takes:?}");
        assert_eq!(tokens.renewals(), 1);
        let counts = breaker.counts("one.example");
        assert_eq!((counts.total_failures, counts.total_exclusions), (0, 0));
    }
}

/// A token that is revoked for good does not cause a storm.
// C-16
#[tokio::test(start_paused = true)]
async fn revoked_token_is_not_a_storm() {
    let tokens = Tokens::default();
    let server = Server::by(|_, _| Act::from(401).later(ms(10)));
    let policy = RetryPolicy::http().seed(1).before_attempt(tokens.hook());
    let policy = policy.protocol(|http| http.on_status(StatusCode::UNAUTHORIZED, Verdict::renew()));
    let client = RetryLayer::new(policy).layer(server.clone());
    for _ in 0..200 {
        assert_eq!(client.clone().send(get()).await.unwrap().status(), 401);
        sleep(ms(50)).await;
    }
    let sent = server.count();
    assert!(sent < 220, "{sent} for 200 calls");
}

/// A redirecting client casts doubt on the proof, so only repeatable calls are retried.
// C-16, trap 60, field 05
#[cfg(feature = "reqwest")]
#[tokio::test]
async fn reqwest_renews_a_dead_token_once() {
    use axum::Router;
    use axum::extract::State;

    let tokens = Tokens::default();
    tokens.valid.store(7, Ordering::SeqCst);
    let state = (tokens.clone(), Arc::new(Barrier::new(30)));
    let check = |State((tokens, all)): State<(Tokens, Arc<Barrier>)>, headers: HeaderMap| async move {
        if tokens.accepts(&headers) {
            return StatusCode::OK;
        }
        all.wait().await;
        StatusCode::UNAUTHORIZED
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let app = Router::new().route("/", axum::routing::get(check).post(check)).with_state(state);
    tokio::spawn(axum::serve(listener, app).into_future());

    let policy = RetryPolicy::http().seed(1).before_attempt(tokens.hook());
    let policy = policy.protocol(|http| http.on_status(StatusCode::UNAUTHORIZED, Verdict::renew()));
    let inner = reqwest::Client::builder().no_proxy().build().unwrap();
    let client = StandardLayer::http().retry(policy.boxed_errors()).layer(inner.clone());
    let mut calls = JoinSet::new();
    for _ in 0..30 {
        let (client, request) = (client.clone(), inner.get(&url).build().unwrap());
        calls.spawn(async move { client.send(request).await.unwrap().status() });
    }
    assert!(calls.join_all().await.into_iter().all(|status| status == 200));
    assert_eq!(tokens.renewals(), 1);
}

/// gRPC calls whose token died end with UNAUTHENTICATED.
// C-16, trap 60, field 05
#[cfg(feature = "tonic")]
#[tokio::test(start_paused = true)]
async fn grpc_renews_a_dead_token_once() {
    use http::Request;
    use reattempt::grpc::{Grpc, GrpcCode};
    use tonic::body::Body;
    use tower::{ServiceExt, service_fn};

    use crate::grpc::support::{Lost, call, ends_with, read, trailers_only};

    let tokens = Tokens::taking(ms(20));
    let state = tokens.clone();
    let server = service_fn(move |request: Request<Body>| {
        let accepted = state.accepts(request.headers());
        async move {
            sleep(ms(10)).await;
            let ended = if accepted { ends_with(GrpcCode::Ok) } else { trailers_only(GrpcCode::Unauthenticated) };
            Ok::<_, Lost>(ended)
        }
    });
    let grpc = Grpc::new().on_code(GrpcCode::Unauthenticated, Verdict::renew());
    let breaker = CircuitBreaker::rate().seed(1);
    let retries = RetryPolicy::with(grpc).seed(1).before_attempt(tokens.hook());
    let stack = StandardLayer::grpc().retry(retries).limits(breaker.clone(), Bulkhead::new(64));
    let client = stack.layer(server);
    tokens.valid.store(7, Ordering::SeqCst);
    let mut calls = JoinSet::new();
    for _ in 0..30 {
        let client = client.clone();
        calls.spawn(async move { read(client.oneshot(call()).await.unwrap()).await.0 });
    }
    assert!(calls.join_all().await.into_iter().all(|code| code == Some(GrpcCode::Ok)));
    assert_eq!(tokens.renewals(), 1);
    let counts = breaker.counts("http://one.example");
    assert_eq!(counts.total_failures, 0);
}
