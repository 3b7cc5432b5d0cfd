//! The behaviours of reqwest-retry, beside those of reattempt-reqwest-middleware: each is kept, or changed as the table
//! in that crate's docs states.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_util::stream;
use http::header::LOCATION;
use http::{Extensions, HeaderValue, Method, StatusCode};
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Http, RetryBudget, RetryPolicy, Verdict};
use reattempt_faults::{End, Reply, Server, Step};
use reattempt_reqwest_middleware::{CallError, ReattemptMiddleware};
use reqwest::redirect;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next, RequestBuilder};
use reqwest_retry::policies::ExponentialBackoff;
use reqwest_retry::{DefaultRetryableStrategy, RetryError, RetryTransientMiddleware, Retryable, RetryableStrategy};
use tokio::net::TcpSocket;

const DELAY: Duration = Duration::from_millis(1);
const RETRIES: u32 = 3;

/// Both middlewares around one client, with the same delay and the same number of retries.
struct Both {
    theirs: ClientWithMiddleware,
    ours: ClientWithMiddleware,
}

fn theirs<R: RetryableStrategy + Send + Sync + 'static>(strategy: R) -> impl Middleware {
    let policy = ExponentialBackoff::builder().retry_bounds(DELAY, DELAY).build_with_max_retries(RETRIES);
    RetryTransientMiddleware::new_with_policy_and_strategy(policy, strategy)
}

fn ours(http: Http) -> impl Middleware {
    let policy = RetryPolicy::with(http).backoff(Constant::new(DELAY)).max_attempts(RETRIES + 1);
    ReattemptMiddleware::new(policy.budget(RetryBudget::unlimited()))
}

impl Both {
    /// Follows redirects, as is reqwest's default.
    fn new() -> Self {
        Self::with(redirect::Policy::limited(1), DefaultRetryableStrategy, Http::new())
    }

    /// Follows no redirects, which the middleware has to know.
    fn without_redirects() -> Self {
        Self::with(redirect::Policy::none(), DefaultRetryableStrategy, Http::new().redirects_below(false))
    }

    fn with<R>(redirects: redirect::Policy, strategy: R, http: Http) -> Self
    where
        R: RetryableStrategy + Send + Sync + 'static,
    {
        let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).redirect(redirects);
        let client = client.build().unwrap();
        let around = |client: &reqwest::Client| ClientBuilder::new(client.clone());
        Self { theirs: around(&client).with(theirs(strategy)).build(), ours: around(&client).with(ours(http)).build() }
    }

    /// Calls a server with this script through either client. Returns the numbers of requests that arrived: those of
    /// reqwest-retry, and ours.
    async fn arrivals(
        &self,
        script: impl Fn() -> Vec<Step<Reply>>,
        request: impl Fn(&ClientWithMiddleware, String) -> RequestBuilder,
    ) -> (usize, usize) {
        let mut counts = [0; 2];
        for (client, count) in [&self.theirs, &self.ours].into_iter().zip(&mut counts) {
            let server = Server::http1(script()).await.unwrap();
            let _ = request(client, server.url("/orders")).send().await;
            *count = server.ledger().arrivals().len();
            // A middleware that sends nothing leaves replies unused.
            let _ = server.finish();
        }
        (counts[0], counts[1])
    }

    /// Returns the retries that each client's error contains.
    async fn retries_of_errors(
        &self,
        request: impl Fn(&ClientWithMiddleware) -> RequestBuilder,
    ) -> (Option<u32>, Option<u32>) {
        let of_theirs = match request(&self.theirs).send().await.unwrap_err() {
            Error::Middleware(error) => match error.downcast_ref() {
                Some(RetryError::WithRetries { retries, .. }) => Some(*retries),
                Some(RetryError::Error(_)) => Some(0),
                None => None,
            },
            Error::Reqwest(_) => None,
        };
        let error = request(&self.ours).send().await.unwrap_err();
        (of_theirs, CallError::of(&error).and_then(|call| Some(call.report()?.retries())))
    }
}

fn once(reply: Reply) -> Vec<Step<Reply>> {
    vec![Step::new(reply)]
}

fn busy() -> Reply {
    Reply::status(StatusCode::SERVICE_UNAVAILABLE)
}

fn get(client: &ClientWithMiddleware, url: String) -> RequestBuilder {
    client.get(url)
}

fn post(client: &ClientWithMiddleware, url: String) -> RequestBuilder {
    client.post(url).body("tea")
}

/// All statuses of a GET: one list of those that reqwest-retry retries, and one of those that differ.
#[tokio::test]
async fn statuses_differ_as_stated() {
    let both = Both::new();
    let (mut retried, mut changed) = (Vec::new(), Vec::new());
    for status in 200..=599 {
        let reply = || once(Reply::status(StatusCode::from_u16(status).unwrap()));
        let (theirs, ours) = both.arrivals(reply, get).await;
        assert!(matches!((theirs, ours), (1 | 2, 1 | 2)), "{status}: {theirs}, {ours}");
        if theirs == 2 {
            retried.push(status);
        }
        if theirs != ours {
            changed.push(status);
        }
    }
    assert_eq!(retried, [408, 429].into_iter().chain(500..=599).collect::<Vec<_>>());
    assert_eq!(changed, [425, 501, 505, 506, 507, 508, 510, 511]);
}

/// Responses that do not arrive whole, in the order (reqwest-retry, ours).
#[tokio::test]
async fn lost_responses_are_retried_by_both() {
    let both = Both::new();
    let incomplete = || Step::new(Reply::raw("HTTP/1.1").end_with(End::Close)).times(3);
    assert_eq!(both.arrivals(|| vec![incomplete()], get).await, (4, 4));
    assert_eq!(both.arrivals(|| once(Reply::reset()), get).await, (2, 2));
    assert_eq!(both.arrivals(|| once(Reply::default().cut(0).end_with(End::Close)), get).await, (2, 2));
    assert_eq!(both.arrivals(|| vec![Step::new(busy()).always()], get).await, (4, 4), "all attempts");

    // The call ends with the head.
    let cut_off = || once(Reply::default().body("short").content_length(100).end_with(End::Close));
    assert_eq!(both.arrivals(cut_off, get).await, (1, 1));
}

/// Timeouts and failed connections: their errors contain the number of retries, and no server has to respond in time.
#[tokio::test]
async fn lost_connections_are_retried_by_both() {
    // The failed connection may be that of a redirect, after the first server has carried the POST out.
    for (both, of_post) in [(Both::new(), 0), (Both::without_redirects(), RETRIES)] {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let nobody = format!("http://{}/", socket.local_addr().unwrap());
        let get = both.retries_of_errors(|client| client.get(&nobody)).await;
        assert_eq!(get, (Some(RETRIES), Some(RETRIES)));
        let post = both.retries_of_errors(|client| client.post(&nobody).body("tea")).await;
        assert_eq!(post, (Some(RETRIES), Some(of_post)));

        // The system accepts connections, and nothing reads from them.
        let listener = socket.listen(64).unwrap();
        let limit = Duration::from_millis(10);
        let late = both.retries_of_errors(|client| client.get(&nobody).timeout(limit)).await;
        assert_eq!(late, (Some(RETRIES), Some(RETRIES)));
        drop(listener);
    }
}

/// Errors of the client itself: a URL that it does not accept, and too many redirects.
#[tokio::test]
async fn errors_of_the_client_are_not_retried() {
    let both = Both::new();
    let ftp = both.retries_of_errors(|client| client.get("ftp://orders.example/")).await;
    assert_eq!(ftp, (Some(0), Some(0)));

    let moved = || Reply::status(StatusCode::FOUND).header(LOCATION, HeaderValue::from_static("/orders"));
    assert_eq!(both.arrivals(|| vec![Step::new(moved()).always()], get).await, (2, 2));
}

/// Requests that must not be repeated: the server may have carried the POST out.
#[tokio::test]
async fn post_is_repeated_by_theirs_alone() {
    let both = Both::without_redirects();
    assert_eq!(both.arrivals(|| once(busy()), post).await, (2, 1));
    assert_eq!(both.arrivals(|| once(Reply::reset()), post).await, (2, 1));
    let patch = |client: &ClientWithMiddleware, url| client.request(Method::PATCH, url).body("tea");
    assert_eq!(both.arrivals(|| once(busy()), patch).await, (2, 1));

    let keyed = |client: &ClientWithMiddleware, url| post(client, url).header("idempotency-key", "order-17");
    assert_eq!(both.arrivals(|| once(busy()), keyed).await, (2, 2));
    let marked =
        |client: &ClientWithMiddleware, url| post(client, url).with_extension(CallOptions::new().repeatable(true));
    assert_eq!(both.arrivals(|| once(Reply::reset()), marked).await, (2, 2));

    // A 429 proves that it was not carried out, unless a redirect led to the server that sent it.
    let throttled = || once(Reply::status(StatusCode::TOO_MANY_REQUESTS));
    assert_eq!(both.arrivals(throttled, post).await, (2, 2));
    assert_eq!(Both::new().arrivals(throttled, post).await, (2, 1));
}

#[tokio::test]
async fn stream_is_sent_by_ours_alone() {
    let upload = |client: &ClientWithMiddleware, url: String| {
        let pieces = stream::iter(["in ", "pieces"].map(Ok::<_, io::Error>));
        client.put(url).body(reqwest::Body::wrap_stream(pieces))
    };
    assert_eq!(Both::new().arrivals(|| once(busy()), upload).await, (0, 2));
}

/// A strategy of reqwest-retry, and the classifier in its place.
#[tokio::test]
async fn strategy_has_its_classifier() {
    struct Locked;

    impl RetryableStrategy for Locked {
        fn handle(&self, outcome: &Result<reqwest::Response, Error>) -> Option<Retryable> {
            outcome
                .as_ref()
                .is_ok_and(|response| response.status() == StatusCode::LOCKED)
                .then_some(Retryable::Transient)
        }
    }

    let http = Http::new().on_status(StatusCode::LOCKED, Verdict::not_processed());
    let both = Both::with(redirect::Policy::none(), Locked, http);
    assert_eq!(both.arrivals(|| once(Reply::status(StatusCode::LOCKED)), get).await, (2, 2));
}

/// The error of a later middleware is a transport error for ours, and final for theirs.
#[tokio::test]
async fn later_middleware_is_retried_by_ours() {
    struct Broken(Arc<AtomicUsize>);

    #[async_trait::async_trait]
    impl Middleware for Broken {
        async fn handle(
            &self,
            _: reqwest::Request,
            _: &mut Extensions,
            _: Next<'_>,
        ) -> reqwest_middleware::Result<reqwest::Response> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Err(Error::middleware(io::Error::from(io::ErrorKind::ConnectionReset)))
        }
    }

    let counts = [Arc::<AtomicUsize>::default(), Arc::default()];
    let [by_theirs, by_ours] = counts.each_ref().map(|count| Broken(Arc::clone(count)));
    let client = || ClientBuilder::new(reqwest::Client::new());
    let theirs = client().with(theirs(DefaultRetryableStrategy)).with(by_theirs).build();
    let ours = client().with(ours(Http::new())).with(by_ours).build();
    for client in [theirs, ours] {
        client.get("http://orders.example/").send().await.unwrap_err();
    }
    assert_eq!(counts.map(|count| count.load(Ordering::Relaxed)), [1, 4]);
}
