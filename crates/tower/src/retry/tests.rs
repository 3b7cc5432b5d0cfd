//! The retry future by hand and under a paused clock.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty, Full};
use reattempt_core::StopReason;
use reattempt_http::ReplayBody;
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::{Report, RetryLayer, RetryPolicy};

type Body = Full<Bytes>;

fn request() -> Request<Body> {
    Request::get("http://one.example/").body(Body::default()).unwrap()
}

fn answer(status: u16) -> Response<Empty<Bytes>> {
    Response::builder().status(status).body(Empty::new()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_retried_until_it_succeeds() {
    let seen = AtomicUsize::new(0);
    let inner = service_fn(|_: Request<ReplayBody<Body>>| {
        let status = if seen.fetch_add(1, Ordering::Relaxed) < 2 { 503 } else { 200 };
        async move { Ok::<_, Infallible>(answer(status)) }
    });
    let mut client = RetryLayer::http().layer(inner);
    let response = client.ready().await.unwrap().call(request()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(seen.load(Ordering::Relaxed), 3);
    let report = response.extensions().get::<Report>().unwrap();
    assert_eq!(report.attempts().len(), 3);
    assert_eq!(report.stop_reason(), StopReason::Succeeded);
    assert!(report.total_delay() <= Duration::from_millis(300));
}

#[tokio::test(start_paused = true)]
async fn the_body_is_sent_whole_each_time() {
    let bodies = std::sync::Mutex::new(Vec::new());
    let inner = service_fn(|request: Request<ReplayBody<Body>>| async {
        let body = request.into_body().collect().await.unwrap().to_bytes();
        bodies.lock().unwrap().push(body);
        Err::<Response<Empty<Bytes>>, _>(io::Error::from(io::ErrorKind::ConnectionReset))
    });
    let client = RetryLayer::new(RetryPolicy::http().max_attempts(4)).layer(inner);
    let request = Request::put("http://one.example/").body(Body::from("hello")).unwrap();
    let error = client.oneshot(request).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    assert_eq!(*bodies.lock().unwrap(), ["hello"; 4]);
}
