//! Tests of `reqwest::Client` under the retry layer: redirects that hide what was carried out, the memory of kept
//! bodies, and the name of a destination.

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::Response;
use reattempt::classify::Outcome;
use reattempt::deadline::DeadlineHeader;
use reattempt::fallback::{FallbackLayer, FellBack};
use reattempt::observe::Event;
use reattempt::report::ReportSlot;
use reattempt::standard::StandardLayer;
use reattempt::{CallOptions, Deadline, Http, Report, ReqwestExt, Retry, RetryBudget, RetryLayer, RetryPolicy};
use reattempt_core::{Failure, FailureKind, StopReason, Verdict};
use reattempt_replay::{ReplayLimits, ReplayMemory};
use reattempt_schedule_fixed::Constant;
use reattempt_testing_layers::loopback::{answer, nobody, scripted, see_other, seen};
use reqwest::{Client, Method, Request, redirect};
use tower::{Layer, Service, ServiceBuilder, ServiceExt, service_fn};

/// Returns all defaults except the delay, which is zero.
fn policy() -> RetryPolicy<Http, Constant> {
    RetryPolicy::http().backoff(Constant::immediate()).budget(RetryBudget::percent(10))
}

type Retried = Retry<Client, RetryPolicy<Http, Constant>>;

/// Returns a client without reqwest's own retries, so that everything sent twice was sent twice by this layer.
fn retried(policy: RetryPolicy<Http, Constant>, redirects: redirect::Policy) -> Retried {
    let bare = Client::builder().no_proxy().retry(reqwest::retry::never()).redirect(redirects);
    Retry::new(policy, bare.build().unwrap())
}

/// Returns a client as most people build it, which follows redirects.
fn following() -> Retried {
    retried(policy(), redirect::Policy::default())
}

/// Returns a client that does not follow redirects, with a policy that states this.
fn straight() -> Retried {
    retried(policy().protocol(|http| http.redirects_below(false)), redirect::Policy::none())
}

fn request(method: &str, url: &str) -> Request {
    let body = if method == "POST" { "pay" } else { "" };
    let method = method.parse().unwrap();
    let request = Client::new().request(method, url);
    if body.is_empty() { request } else { request.body(body) }.build().unwrap()
}

/// A form responds to its POST with a redirect to itself, and is then too busy to show the result. The refusal has the
/// request's URL, but the POST was processed.
#[tokio::test]
async fn redirected_refused_post_is_not_repeated() {
    let server = scripted([see_other("/form"), answer(429), answer(200)]).await;
    let slot = ReportSlot::default();
    let client = following().with_options(CallOptions::new().report_to(&slot));
    let response = client.oneshot(request("POST", &server.url("/form"))).await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().path()), (429, "/form"));
    assert_eq!(seen(&server), ["POST /form", "GET /form"]);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::EarlierHop);
}

/// Once with another client's builder, and once with the standard stack around the real one.
#[tokio::test]
async fn backup_answers_for_a_stack() {
    let down = scripted([answer(503)]).await;
    let mirror = scripted([answer(200)]).await;
    let url = reqwest::Url::parse(&mirror.url("/mirror")).unwrap();
    let http = Client::builder().no_proxy().build().unwrap();
    let policy = RetryPolicy::http().max_attempts(1).seed(1).boxed_errors();
    let stack = StandardLayer::http().retry(policy);
    let backup = ServiceBuilder::new()
        .map_request(move |mut request: Request| {
            *request.url_mut() = url.clone();
            request
        })
        .service(stack.layer(http.clone()));
    let client = stack.fallback(FallbackLayer::backup(backup)).layer(http);
    let put = || Client::new().put(down.url("/page"));
    let response = put().body("hello").send_with(&client).await.unwrap();
    assert_eq!((response.status().as_u16(), response.url().path()), (200, "/mirror"));
    assert!(response.extensions().get::<FellBack>().is_some());
    assert_eq!(seen(&mirror), ["PUT /mirror"]);
}

#[tokio::test]
async fn redirected_unsent_post_is_not_repeated() {
    let (_socket, nobody) = nobody().await;
    let server = scripted([see_other(&nobody)]).await;
    let slot = ReportSlot::default();
    let client = following().with_options(CallOptions::new().report_to(&slot));
    let error = client.oneshot(request("POST", &server.url("/form"))).await.unwrap_err();
    assert!(error.is_connect(), "{error:?}");
    assert_eq!(seen(&server), ["POST /form"]);
    assert_eq!(slot.take().unwrap().stop_reason(), StopReason::EarlierHop);
}

#[tokio::test]
async fn redirected_get_is_repeated() {
    let (_socket, nobody) = nobody().await;
    let server = scripted([see_other(&nobody)]).await;
    following().oneshot(request("GET", &server.url("/page"))).await.unwrap_err();
    assert_eq!(seen(&server), ["GET /page"; 3]);

    let server = scripted([see_other("/form"), answer(429), answer(200)]).await;
    let client = following().with_options(CallOptions::new().repeatable(true));
    let response = client.oneshot(request("POST", &server.url("/form"))).await.unwrap();
    assert_eq!(response.status(), 200);
    assert_eq!(seen(&server), ["POST /form", "GET /form", "POST /form"]);
}

#[tokio::test]
async fn post_without_redirects_is_repeated() {
    let server = scripted([answer(429), see_other("/form")]).await;
    let response = straight().oneshot(request("POST", &server.url("/form"))).await.unwrap();
    assert_eq!(response.status(), 303);
    assert_eq!(seen(&server), ["POST /form"; 2]);

    let (_socket, nobody) = nobody().await;
    let slot = ReportSlot::default();
    let client = straight().with_options(CallOptions::new().report_to(&slot));
    client.oneshot(request("POST", &nobody)).await.unwrap_err();
    let report = slot.take().unwrap();
    assert_eq!((report.retries(), report.stop_reason()), (2, StopReason::AttemptsExhausted));
}

#[tokio::test]
async fn own_verdict_holds_behind_redirects() {
    let refused = Verdict::NotProcessed(Failure::new(FailureKind::Server));
    let policy = policy().protocol(|http| http.on_status(http::StatusCode::SERVICE_UNAVAILABLE, refused));
    let client = retried(policy, redirect::Policy::default());
    let server = scripted([answer(503), answer(200)]).await;
    let response = client.oneshot(request("POST", &server.url("/pay"))).await.unwrap();
    assert_eq!((response.status().as_u16(), seen(&server).len()), (200, 2));
}

/// Returns a client in place of reqwest's that reads nothing, and refuses every request except its last.
fn refusing() -> impl Service<Request, Response = reqwest::Response, Error = Infallible, Future: Send> + Clone {
    service_fn(|_: Request| async {
        Ok(Response::builder().status(503).body("").map(reqwest::Response::from).unwrap())
    })
}

fn put(bytes: usize) -> Request {
    Client::new().put("http://one.example/").body(vec![0; bytes]).build().unwrap()
}

// trap 32
#[tokio::test]
async fn bodies_of_bytes_count_against_bound() {
    let memory = ReplayMemory::new(60_000);
    let limits = ReplayLimits::default().per_call(10_000).memory(memory.clone());
    let policy = policy().protocol(|http| http.replay(limits));
    // The memory in use while each attempt is in flight.
    let used = Arc::new(Mutex::new(Vec::new()));
    let (noted, bound) = (Arc::clone(&used), memory.clone());
    let inner = service_fn(move |request: Request| {
        noted.lock().unwrap().push(bound.used());
        refusing().oneshot(request)
    });
    let client = RetryLayer::new(policy).layer(inner);
    for (bytes, in_use, reason) in [
        (30_000, vec![30_000, 30_000, 0], StopReason::AttemptsExhausted),
        // Nothing of it is kept, because less would stay free. Nothing of it was read.
        (30_001, vec![0, 0, 0], StopReason::AttemptsExhausted),
        (0, vec![0, 0, 0], StopReason::AttemptsExhausted),
    ] {
        let response = client.clone().oneshot(put(bytes)).await.unwrap();
        let report = response.extensions().get::<Report>().unwrap();
        assert_eq!(report.stop_reason(), reason, "{bytes}");
        assert_eq!(std::mem::take(&mut *used.lock().unwrap()), in_use, "{bytes}");
        assert_eq!(memory.used(), 0, "{bytes}");
    }
}

#[tokio::test]
async fn bytes_past_bound_are_sent_once_if_read() {
    let memory = ReplayMemory::new(60_000);
    let policy = policy().protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())));
    let lengths = Mutex::new(Vec::new());
    let inner = service_fn(|mut request: Request| {
        let body = request.body_mut().take().unwrap();
        lengths.lock().unwrap().push(http_body::Body::size_hint(&body).exact());
        async {
            let read = http_body_util::BodyExt::collect(body).await.unwrap();
            assert_eq!(read.to_bytes().len(), 60_001);
            refusing().oneshot(put(0)).await
        }
    });
    let response = RetryLayer::new(policy).layer(inner).oneshot(put(60_001)).await.unwrap();
    let report = response.extensions().get::<Report>().unwrap();
    assert_eq!(report.stop_reason(), StopReason::BodyNotKept);
    assert_eq!((memory.used(), lengths.into_inner().unwrap()), (0, vec![Some(60_001)]));
}

#[tokio::test]
async fn bytes_over_the_cap_are_sent_again() {
    let server = scripted([answer(503), answer(200)]).await;
    let body = "x".repeat(100_000);
    let request = Client::new().put(server.url("/")).body(body).build().unwrap();
    let response = straight().oneshot(request).await.unwrap();
    assert_eq!((response.status().as_u16(), seen(&server).len()), (200, 2));

    let (_socket, url) = nobody().await;
    let request = Client::new().post(url).body("x".repeat(100_000)).build().unwrap();
    let slot = ReportSlot::default();
    let options = CallOptions::new().report_to(&slot);
    straight().with_options(options).oneshot(request).await.unwrap_err();
    assert_eq!(slot.take().unwrap().retries(), 2);
}

#[tokio::test]
async fn destination_is_host_and_port_only() {
    let rows = [
        ("http://bob:secret@ONE.example:80/path", "one.example"),
        ("https://bob:secret@one.example:443/", "https://one.example"),
        ("http://one.example:8080/", "one.example:8080"),
        ("https://one.example:80/", "https://one.example:80"),
        ("https://one.example/a@b?c", "https://one.example"),
        ("http://[::1]:8080/", "[::1]:8080"),
        ("http://[::1]:80/", "[::1]"),
        ("http://one.example./", "one.example"),
        ("https://bob@ONE.example.:8080/path", "https://one.example:8080"),
    ];
    for (url, expected) in rows {
        let told = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&told);
        let policy = policy().observe_with(move |destination: &str, _: &Event<'_>| {
            noted.lock().unwrap().push(destination.to_owned());
        });
        let client = RetryLayer::new(policy).layer(refusing());
        // Not with a builder, which removes the password from the URL itself.
        client.oneshot(Request::new(Method::GET, url.parse().unwrap())).await.unwrap();
        let told = told.lock().unwrap();
        assert!(!told.is_empty() && told.iter().all(|name| name == expected), "{url}: {told:?}");
    }
}

/// A reqwest error contains the URL in its own text.
#[tokio::test]
async fn error_of_reqwest_is_told_without_query() {
    let (nobody, _) = nobody().await;
    let url = format!("http://bob:secret@{}/pay?api_key=secret", nobody.address());
    let told = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&told);
    let policy = policy().observe_with(move |destination: &str, event: &Event<'_>| {
        noted.lock().unwrap().push(format!("{destination} {event} {event:?}"));
    });
    let slot = ReportSlot::default();
    let client = retried(policy, redirect::Policy::default());
    let client = client.with_options(CallOptions::new().report_to(&slot));
    let error = client.oneshot(request("GET", &url)).await.unwrap_err();
    assert!(error.to_string().contains("secret"), "{error}");
    let report = slot.take().unwrap();
    let mut texts = std::mem::take(&mut *told.lock().unwrap());
    texts.push(format!("{report} {report:?}"));
    assert!(texts.len() > 3 && texts.iter().any(|text| text.contains("/pay?...)")), "{texts:?}");
    assert!(!texts.iter().any(|text| text.contains("secret")), "{texts:?}");
}

#[tokio::test]
async fn classifier_sees_request_of_reqwest() {
    let server = scripted([answer(404)]).await;
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&seen);
    let policy = policy().protocol(|http| {
        http.redirects_below(false).classify(move |outcome: Outcome<'_>| {
            let request = outcome.request()?;
            let line = format!("{} {} {:?}", request.method(), request.path(), request.query());
            noted.lock().unwrap().push((line, request.authority()?.to_owned()));
            (outcome.status()? == 404).then(Verdict::transient)
        })
    });
    let client = retried(policy, redirect::Policy::none());
    client.oneshot(request("GET", &server.url("/search?q=rust"))).await.unwrap();
    let line = "GET /search Some(\"q=rust\")".to_owned();
    let expected = (line, server.address().to_string());
    assert_eq!(*seen.lock().unwrap(), vec![expected; 3], "of the last attempt, too");
}

#[tokio::test]
async fn own_verdict_on_429_outranks_should_retry() {
    let refused = answer(429).header("stripe-should-retry".parse().unwrap(), "true".parse().unwrap());
    for (own, attempts) in [(None, 2), (Some(Verdict::Permanent), 1)] {
        let server = scripted([refused.clone(), answer(200)]).await;
        let policy = policy().protocol(|http| match own {
            Some(own) => http.on_status(http::StatusCode::TOO_MANY_REQUESTS, own),
            None => http,
        });
        let client = retried(policy, redirect::Policy::none());
        client.oneshot(request("GET", &server.url("/"))).await.unwrap();
        assert_eq!(seen(&server).len(), attempts, "{own:?}");
    }
}

#[tokio::test]
async fn rules_and_untrusted_keys_of_reqwest() {
    let keyed = |url: &str| {
        let mut request = request("POST", url);
        request.headers_mut().insert("idempotency-key", "\"theirs\"".parse().unwrap());
        request
    };
    for (path, trusted, attempts) in [("/order", true, 3), ("/order", false, 1), ("/search?q=rust", false, 3)] {
        let server = scripted([answer(503)]).await;
        let policy = policy().protocol(|http| {
            http.trust_idempotency_keys(trusted).options_for(|request| {
                let search = request.path() == "/search" && request.query() == Some("q=rust");
                search.then(|| CallOptions::new().repeatable(true))
            })
        });
        let client = retried(policy, redirect::Policy::none());
        client.oneshot(keyed(&server.url(path))).await.unwrap();
        assert_eq!(seen(&server).len(), attempts, "{path}, {trusted}");
    }
}

// DL-2
#[tokio::test]
async fn reqwest_attempts_carry_what_is_left() {
    let server = scripted([answer(503), answer(503), answer(200)]).await;
    let policy = policy().deadline_header(DeadlineHeader::milliseconds("x-left-ms".parse().unwrap()));
    let client = retried(policy, redirect::Policy::none());
    client.clone().oneshot(request("POST", &server.url("/"))).await.unwrap();
    let options = CallOptions::new().deadline(Deadline::after(Duration::from_secs(60)));
    let mut call = request("GET", &server.url("/"));
    call.headers_mut().insert("x-left-ms", "99000".parse().unwrap());
    client.with_options(options).oneshot(call).await.unwrap();
    let arrivals = server.ledger().arrivals();
    let left: Vec<_> = arrivals.iter().map(|arrival| arrival.headers.get("x-left-ms")).collect();
    let [None, Some(first), Some(second)] = &left[..] else { panic!("{left:?}") };
    let millis = |value: &http::HeaderValue| value.to_str().unwrap().parse::<u64>().unwrap();
    assert!(millis(first) <= 60_000 && millis(second) <= millis(first), "{left:?}");
}
