//! Custom classification: by status, by a function, and for one call.
//!
//! `cargo run --example custom_classifier`

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Request, StatusCode};
use http_body_util::Empty;
use hyper_util::{client::legacy::Client, rt::TokioExecutor};
use reattempt::classify::Outcome;
use reattempt::schedule::{Failure, FailureKind};
use reattempt::{CallOptions, Http, Report, RetryLayer, RetryPolicy, Verdict};
use tokio::net::TcpListener;
use tower::{BoxError, ServiceBuilder};

const BUSY: HeaderName = HeaderName::from_static("x-busy");
const LOCKED: Failure = Failure::new(FailureKind::Server).with_code(423);

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let http = Http::new()
        // This server sends 423 before it does anything, so even a POST may be repeated.
        .on_status(StatusCode::LOCKED, Verdict::NotProcessed(LOCKED))
        // `None` means "no opinion": the defaults apply.
        .classify(|outcome: Outcome<'_>| {
            let busy = outcome.headers()?.contains_key(BUSY);
            busy.then_some(Verdict::Transient(Failure::new(FailureKind::Throttled)))
        });
    let policy = RetryPolicy::with(http);
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .service(Client::builder(TokioExecutor::new()).build_http());

    // Options for one call, in its request's extensions: this 404 means that a copy has not arrived yet.
    let patient = CallOptions::new().max_attempts(4).classify(|outcome: Outcome<'_>| {
        let missing = outcome.status()? == StatusCode::NOT_FOUND;
        missing.then_some(Verdict::Transient(Failure::new(FailureKind::Other)))
    });

    // (title, method, the server's responses in turn, options, the expected attempts)
    let calls: [(&str, &str, &'static [u16], CallOptions, usize); 6] = [
        ("a default", "GET", &[503, 200], CallOptions::new(), 2),
        ("202, but busy", "GET", &[202, 200], CallOptions::new(), 2),
        ("423, by status", "POST", &[423, 423, 200], CallOptions::new(), 3),
        ("404, as ever", "GET", &[404], CallOptions::new(), 1),
        ("404, this time", "GET", &[404, 404, 404, 200], patient, 4),
        ("never", "GET", &[503], CallOptions::new().never_retry(), 1),
    ];
    for (what, method, script, options, expected) in calls {
        let (server, arrived) = server(script).await?;
        let request = Request::builder().method(method).uri(format!("http://{server}/"));
        let request = request.extension(options).body(Empty::<Bytes>::new())?;
        let response = client.send(request).await?;
        println!("{what}: {}", response.status());
        if let Some(report) = response.extensions().get::<Report>() {
            println!("{report}\n");
        }
        assert_eq!(arrived.load(Ordering::Relaxed), expected, "{what}");
    }
    Ok(())
}

/// Starts a server that responds with these codes in turn, and marks a 202 as busy.
async fn server(script: &'static [u16]) -> Result<(SocketAddr, Arc<AtomicUsize>), BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let arrived = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&arrived);
    let answer = move || {
        let code = script.get(counter.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or(200);
        let busy = HeaderMap::from_iter((code == 202).then(|| (BUSY, HeaderValue::from(1))));
        async move { (StatusCode::from_u16(code).unwrap_or_default(), busy) }
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    Ok((address, arrived))
}
