//! The counter of real sends, above clients that repeat requests and those that do not.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{Method, Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::schedule::Constant;
use reattempt::{Http, RetryBudget, RetryPolicy};
use reattempt_faults::{Reply, Sends, Server, Step};
use tower::{ServiceBuilder, ServiceExt};

fn policy(max_attempts: u32) -> RetryPolicy<Http, Constant> {
    let soon = Constant::new(Duration::from_millis(1));
    RetryPolicy::http().backoff(soon).max_attempts(max_attempts).budget(RetryBudget::unlimited())
}

/// Returns a counter with the texts of its warnings.
fn counter() -> (Sends, Arc<Mutex<Vec<String>>>) {
    let warnings = Arc::<Mutex<Vec<_>>>::default();
    let noted = Arc::clone(&warnings);
    (Sends::new(move |repeated| noted.lock().unwrap().push(repeated.to_string())), warnings)
}

fn busy() -> Step<Reply> {
    Step::new(Reply::status(StatusCode::SERVICE_UNAVAILABLE)).always()
}

/// Makes two calls through a layer with two attempts, above a layer that nobody knows of.
async fn call_twice(server: &Server, sends: &Sends, hidden: u32, http2: bool) {
    let connector = sends.connector(HttpConnector::new());
    let client = ServiceBuilder::new()
        .layer(sends.layer())
        .layer(policy(2))
        .layer(sends.layer())
        .layer(policy(hidden))
        .service(Client::builder(TokioExecutor::new()).http2_only(http2).build(connector));
    for path in ["/a", "/b"] {
        let request = Request::put(server.url(path)).body("POST \r\n body".to_owned()).unwrap();
        let response = client.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    }
}

#[tokio::test]
async fn hidden_retries_are_counted_by_call() {
    let (sends, warnings) = counter();
    let server = Server::http1([busy()]).await.unwrap();
    call_twice(&server, &sends, 3, false).await;
    let text = |call, sends, attempts| {
        format!(
            "call {call}: {sends} requests were sent for {attempts} attempts, so a client below the retry layer repeats them"
        )
    };
    let of_call = |call| [text(call, 2, 1), text(call, 3, 1), text(call, 4, 2), text(call, 5, 2), text(call, 6, 2)];
    assert_eq!(*warnings.lock().unwrap(), [of_call(1), of_call(2)].concat());
    let counted = sends.repeated_in(server.ledger());
    assert_eq!(
        counted.iter().map(|it| (it.call, it.attempts, it.sends)).collect::<Vec<_>>(),
        [(Some(1), 2, 6), (Some(2), 2, 6)]
    );
}

#[tokio::test]
async fn attempts_of_the_layer_are_no_repeats() {
    let (sends, warnings) = counter();
    let server = Server::http1([busy()]).await.unwrap();
    call_twice(&server, &sends, 1, false).await;
    assert_eq!(server.ledger().arrivals().len(), 4);
    assert_eq!(sends.repeated_in(server.ledger()), []);
    assert_eq!(*warnings.lock().unwrap(), [""; 0]);
}

#[tokio::test]
async fn http2_streams_are_counted_together() {
    let (sends, warnings) = counter();
    let server = Server::http2([busy()]).await.unwrap();
    call_twice(&server, &sends, 1, true).await;
    assert_eq!(*warnings.lock().unwrap(), [""; 0]);

    let server = Server::http2([busy()]).await.unwrap();
    call_twice(&server, &sends, 2, true).await;
    let warnings = warnings.lock().unwrap();
    // After 4 requests for 4 attempts, each of the 4 further attempts is sent twice.
    assert_eq!(warnings.len(), 7, "{warnings:?}");
    assert!(warnings[0].starts_with("all calls: 6 requests were sent for 5 attempts"), "{warnings:?}");
    assert!(warnings[6].starts_with("all calls: 12 requests were sent for 8 attempts"), "{warnings:?}");
}

/// reqwest sends a refused stream again by itself. Its connections cannot be counted, so the server's ledger is read.
#[tokio::test]
async fn reqwest_repeats_are_found_in_the_ledger() {
    let (sends, _) = counter();
    let server = Server::http2([Reply::refused_stream(), Reply::default(), Reply::default()]).await.unwrap();
    let builder = || reqwest::Client::builder().no_proxy().http2_prior_knowledge();
    let never = builder().retry(reqwest::retry::never()).build().unwrap();
    for client in [builder().build().unwrap(), never] {
        let mut request = reqwest::Request::new(Method::POST, server.url("/pay").parse().unwrap());
        sends.mark(request.headers_mut());
        sends.mark(request.headers_mut());
        assert_eq!(client.execute(request).await.unwrap().status(), StatusCode::OK);
    }
    let counted = sends.repeated_in(server.ledger());
    let [repeated] = counted.as_slice() else { panic!("{counted:?}") };
    assert_eq!((repeated.call, repeated.attempts, repeated.sends), (Some(1), 1, 2));
}
