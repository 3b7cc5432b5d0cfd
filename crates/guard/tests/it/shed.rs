//! Tests of load shedding: the responses to refused calls, and clients that respect them.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use reattempt::guard::handle::UsageExt;
use reattempt::guard::{AdaptiveLimit, Bulkhead, Limit, RateLimit};
use reattempt::retry::AttemptContext;
use reattempt::shed::ShedLayer;
use reattempt::{ReplayBody, Report, RetryBudget, RetryLayer, RetryPolicy, StopReason};
use reattempt_core::guard::Guard;
use reattempt_testing_layers::calls::{Body, get, mocked, ms, policy, put};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use tower::{Layer, Service, ServiceExt, service_fn};

/// A handler that takes 100 ms for a request.
async fn work<B>(_: Request<B>) -> Result<Response<Full<Bytes>>, Infallible> {
    sleep(ms(100)).await;
    Ok(Response::new(Full::from("done")))
}

fn number<B>(response: &Response<B>, field: &str) -> Option<u64> {
    response.headers().get(field)?.to_str().ok()?.parse().ok()
}

// G9
#[tokio::test(start_paused = true)]
async fn refusal_is_503_with_a_delay() {
    let server = ShedLayer::http(Bulkhead::new(1)).layer(service_fn(work));
    let busy = tokio::spawn(server.clone().oneshot(get()));
    tokio::task::yield_now().await;
    let refused = server.clone().oneshot(get()).await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    let wait = number(&refused, "retry-after-ms").unwrap();
    assert!((1_000..=2_000).contains(&wait), "no call has ended: {wait}");
    assert_eq!(number(&refused, "retry-after"), Some(wait.div_ceil(1000)));
    assert!(refused.headers().get("x-should-retry").is_none());
    assert_eq!(busy.await.unwrap().unwrap().status(), StatusCode::OK);
}

// G9
#[tokio::test(start_paused = true)]
async fn rate_limit_is_429_with_its_wait() {
    let limit = RateLimit::new(Limit::per_second(2), 1).no_queue();
    let server = ShedLayer::http(limit).layer(service_fn(work));
    assert_eq!(server.clone().oneshot(get()).await.unwrap().status(), StatusCode::OK);
    let refused = server.clone().oneshot(get()).await.unwrap();
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!((400..=800).contains(&number(&refused, "retry-after-ms").unwrap()));
}

// G9
#[tokio::test(start_paused = true)]
async fn delay_follows_the_rate_of_ended_calls() {
    let mut delays = Vec::new();
    for refusals in [10, 400] {
        let server = ShedLayer::http(Bulkhead::new(1)).layer(service_fn(work));
        server.clone().oneshot(get()).await.unwrap();
        let busy = tokio::spawn(server.clone().oneshot(get()));
        tokio::task::yield_now().await;
        let mut delay = 0;
        for _ in 0..refusals {
            let refused = server.clone().oneshot(get()).await.unwrap();
            delay = number(&refused, "retry-after-ms").unwrap();
        }
        delays.push(delay);
        busy.await.unwrap().unwrap();
    }
    // One call has ended in 100 ms. The others take as long each, and up to 100 % is added.
    assert!((1_000..=2_100).contains(&delays[0]), "{delays:?}");
    assert!((30_000..=60_000).contains(&delays[1]), "at most 30 s and its jitter: {delays:?}");
}

// G9
#[tokio::test(start_paused = true)]
async fn client_returns_after_the_delay() {
    let server = ShedLayer::http(Bulkhead::new(1)).layer(service_fn(work));
    let client = RetryLayer::new(policy()).layer(server.clone());
    let busy = server.oneshot(get().map(ReplayBody::passthrough));
    let busy = tokio::spawn(async { drop(busy.await) });
    tokio::task::yield_now().await;
    let began = Instant::now();
    let response = client.send(get()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let report = Report::of(&response).unwrap();
    assert_eq!(report.attempts().len(), 2);
    assert!(report.total_delay() >= ms(100) && began.elapsed() >= ms(200));
    busy.await.unwrap();
}

/// Sends the calls of a storm, with this percentage of retries. Returns the last response.
async fn storm<G: Guard>(guard: G, retries: usize) -> Response<impl http_body::Body> {
    let server = ShedLayer::http(guard).layer(service_fn(work));
    let mut last = None;
    for call in 0..100 {
        let mut request = get();
        let attempt = if call < retries { "2" } else { "1" };
        request.headers_mut().insert("x-envoy-attempt-count", HeaderValue::from_static(attempt));
        last = Some(server.clone().oneshot(request).await.unwrap());
    }
    last.unwrap()
}

// G9
#[tokio::test(start_paused = true)]
async fn storm_of_retries_is_told_to_stop() {
    for (retries, stops) in [(40, false), (60, true)] {
        let response = storm(Bulkhead::new(0), retries).await;
        let answer = response.headers().get("x-should-retry").map(HeaderValue::as_bytes);
        assert_eq!(answer, stops.then_some(&b"false"[..]), "{retries}");
    }
}

/// Retries must be more than half of the calls.
// G9
#[tokio::test(start_paused = true)]
async fn half_the_calls_may_be_retries() {
    for (retries, stops) in [(50, false), (51, true)] {
        let response = storm(Bulkhead::new(0), retries).await;
        assert_eq!(response.headers().contains_key("x-should-retry"), stops, "{retries}");
    }
}

// G9
#[tokio::test(start_paused = true)]
async fn client_stops_when_it_is_told_to() {
    let arrived = Arc::new(AtomicUsize::new(0));
    // A limit with a known wait brings all clients back at once.
    let limit = RateLimit::new(Limit::per_second(2), 1).no_queue();
    let server = ShedLayer::http(limit).layer(service_fn(work));
    let counted = Arc::clone(&arrived);
    let server = service_fn(move |request: Request<ReplayBody<Body>>| {
        counted.fetch_add(1, Ordering::Relaxed);
        server.clone().oneshot(request)
    });
    let retries = RetryPolicy::http().max_attempts(10).budget(RetryBudget::unlimited());
    let retries = retries.before_attempt(|head: &mut Parts, attempt: AttemptContext| {
        Box::pin(async move {
            head.headers.insert("x-envoy-attempt-count", attempt.number.into());
        })
    });
    let client = RetryLayer::new(retries).layer(server);
    let mut calls = JoinSet::new();
    for _ in 0..100 {
        let call = client.send(get());
        calls.spawn(async move { Report::of(&call.await.unwrap()).map(Report::stop_reason) });
    }
    let reasons = calls.join_all().await;
    assert!(reasons.contains(&Some(StopReason::ServerSaidStop)), "{reasons:?}");
    assert!(arrived.load(Ordering::Relaxed) < 500, "of at most 1,000");
}

#[test]
fn axum_router_takes_the_layer() {
    let router: axum::Router = axum::Router::new().layer(ShedLayer::http(reattempt::guard::AdaptiveLimit::vegas()));
    fn service<S: Service<Request<axum::body::Body>>>(_: &S) {}
    service(&router);
}

#[tokio::test(start_paused = true)]
async fn grpc_refusal_has_a_pushback() {
    use reattempt_grpc::Code;

    use reattempt_testing_layers::grpc::{GrpcServer, ends_with};

    let request = || Request::post("http://one.example/service/method").body(tonic::body::Body::empty()).unwrap();
    let server = GrpcServer::by(|_| (100, Ok(ends_with(Code::Ok))));
    let server = ShedLayer::grpc(Bulkhead::new(1)).layer(server);
    let busy = tokio::spawn(server.clone().oneshot(request()));
    tokio::task::yield_now().await;
    let refused = server.clone().oneshot(request()).await.unwrap();
    assert_eq!(number(&refused, "grpc-status"), Some(8));
    assert!((100..=2_000).contains(&number(&refused, "grpc-retry-pushback-ms").unwrap()));
    assert!(refused.headers().get("reattempt-refused").is_none());
    drop(busy.await.unwrap().unwrap());
}

/// One caller ruins a call in each window of the limit, which is not a sign of load.
#[tokio::test(start_paused = true)]
async fn one_caller_does_not_lower_limit() {
    for status in [408, 429] {
        let limit = AdaptiveLimit::aimd();
        let server = service_fn(move |request: Request<Body>| async move {
            sleep(ms(20)).await;
            Ok::<_, Infallible>(mocked(if request.method() == "PUT" { status } else { 200 }))
        });
        let server = ShedLayer::http(limit.clone()).layer(server);
        for number in 0..1_000 {
            let request = if number % 50 == 0 { put() } else { get() };
            drop(server.clone().oneshot(request).await.unwrap());
        }
        assert_eq!(limit.usage("").limit, 20, "{status}");
    }
}

/// A tonic server drops a call at the deadline that its caller has chosen.
#[tokio::test(start_paused = true)]
async fn one_grpc_caller_does_not_lower_limit() {
    use http_body_util::BodyExt;
    use reattempt_grpc::Code;

    use reattempt_testing_layers::grpc::{Answer, GrpcServer, call_within, ends_with, trailers_only};

    let spoilt: [fn() -> (u64, Answer); 3] = [
        || (20, trailers_only(Code::ResourceExhausted)),
        || (20, ends_with(Code::DeadlineExceeded)),
        || (100, ends_with(Code::Ok)),
    ];
    for (case, spoilt) in spoilt.into_iter().enumerate() {
        let limit = AdaptiveLimit::aimd();
        let server = GrpcServer::after(move |number| match number % 50 {
            1 => spoilt(),
            _ => (20, ends_with(Code::Ok)),
        });
        let server = ShedLayer::grpc(limit.clone()).layer(server);
        for _ in 0..1_000 {
            let call = server.clone().oneshot(call_within("50m"));
            if let Ok(response) = tokio::time::timeout(ms(50), call).await {
                drop(response.unwrap().into_body().collect().await.unwrap());
            }
        }
        assert_eq!(limit.usage("").limit, 20, "{case}");
    }
}

/// Arrivals, retries, ends and refusals are counted separately, in the current second and the previous one.
// G9
#[tokio::test(start_paused = true)]
async fn calls_are_counted_for_two_seconds() {
    let layer = ShedLayer::http(Bulkhead::new(1));
    let server = layer.layer(service_fn(work));
    let busy = tokio::spawn(server.clone().oneshot(get()));
    tokio::task::yield_now().await;
    for attempt in ["1", "2", "3"] {
        let mut request = get();
        request.headers_mut().insert("x-envoy-attempt-count", HeaderValue::from_static(attempt));
        server.clone().oneshot(request).await.unwrap();
    }
    busy.await.unwrap().unwrap();
    let counts = "LoadCounts { arrived: 4, retries: 2, ended: 1, refused: 3 }";
    let none = "LoadCounts { arrived: 0, retries: 0, ended: 0, refused: 0 }";
    for (wait, current, before) in [(899, counts, none), (1, none, counts), (999, none, counts), (1, none, none)] {
        tokio::time::advance(ms(wait)).await;
        let text = format!("{layer:?}");
        let expected = format!("gauge: ServerLoad {{ current: {current}, before: {before} }}");
        assert!(text.contains(&expected), "{text}");
    }
}

/// A bucket's counts still apply in the next second, and are dropped after a pause.
// G9
#[tokio::test(start_paused = true)]
async fn pause_forgets_both_seconds() {
    let layer = ShedLayer::http(Bulkhead::new(0));
    let server = layer.layer(service_fn(work));
    for pause in [2_000, 60_000] {
        drop(server.clone().oneshot(get()).await.unwrap());
        tokio::time::advance(ms(pause)).await;
        let text = format!("{layer:?}");
        assert_eq!(text.matches("refused: 0").count(), 2, "{text}");
    }
}
