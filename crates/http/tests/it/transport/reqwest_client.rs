//! Tests with reqwest: the same errors with one more wrapper, and reqwest's own errors.

use std::sync::Arc;
use std::time::Duration;

use reattempt_core::Verdict;
use reqwest::dns::{Name, Resolve, Resolving};
use reqwest::{Body, Client, ClientBuilder, StatusCode};
use tokio::io::AsyncWriteExt;

use super::server::{read_head, read_on, refused, reset, serve};
use super::*;

fn builder() -> ClientBuilder {
    Client::builder().no_proxy()
}

fn client() -> Client {
    builder().build().unwrap()
}

/// Starts a server that sends this response to every request.
async fn answers(answer: &'static str) -> String {
    let server = serve(move |mut connection| async move {
        read_head(&mut connection).await;
        connection.write_all(answer.as_bytes()).await.unwrap();
        read_on(&mut connection).await;
    });
    format!("http://{}/", server.await)
}

/// Starts a server that never responds.
async fn silent() -> String {
    format!("http://{}/", serve(async |mut connection| read_on(&mut connection).await).await)
}

/// A resolver without results: `None` fails at once, `Some` never completes.
#[derive(Debug)]
struct Resolver(Option<()>);

impl Resolve for Resolver {
    fn resolve(&self, _: Name) -> Resolving {
        match self.0 {
            Some(()) => Box::pin(std::future::pending()),
            None => Box::pin(async { Err("no such name".into()) }),
        }
    }
}

#[tokio::test]
async fn connection_refused() {
    let uri = format!("http://{}/", refused().await);
    assert_verdict(client().get(uri).send().await, NOT_CONNECTED);
}

#[tokio::test]
async fn no_such_name() {
    assert_verdict(client().get("http://reattempt.invalid/").send().await, NOT_CONNECTED);
    let own = builder().dns_resolver(Arc::new(Resolver(None))).build().unwrap();
    assert_verdict(own.get("http://localhost/").send().await, NOT_CONNECTED);
}

#[tokio::test]
async fn no_connection_in_time() {
    let client = builder()
        .connect_timeout(Duration::from_millis(20))
        .dns_resolver(Arc::new(Resolver(Some(()))))
        .build()
        .unwrap();
    let error = client.get("http://localhost/").send().await.unwrap_err();
    assert!(error.is_timeout(), "{error:?}");
    assert_eq!(verdict_of_error(&error), Some(NOT_CONNECTED));
}

#[tokio::test]
async fn no_answer_in_time() {
    let client = builder().timeout(Duration::from_millis(20)).build().unwrap();
    assert_verdict(client.get(silent().await).send().await, TIMED_OUT);
}

// trap 24
#[tokio::test]
async fn reset_after_request_was_sent_is_no_proof() {
    let server = serve(async |mut connection| {
        read_head(&mut connection).await;
        reset(connection);
    });
    let uri = format!("http://{}/", server.await);
    assert_verdict(client().post(uri).send().await, LOST);
}

#[tokio::test]
async fn refused_stream_again_and_again() {
    let server = serve(async |connection| {
        let mut connection = h2::server::handshake(connection).await.unwrap();
        while let Some(Ok((_, mut answer))) = connection.accept().await {
            answer.send_reset(h2::Reason::REFUSED_STREAM);
        }
    });
    let client = builder().http2_prior_knowledge().build().unwrap();
    let uri = format!("http://{}/", server.await);
    assert_verdict(client.post(uri).send().await, REFUSED);
}

// trap 24
#[tokio::test]
async fn callers_own_body_times_out() {
    let late = Fails(|| std::io::ErrorKind::TimedOut.into());
    let request = client().post(silent().await).body(Body::wrap(late));
    let error = request.send().await.unwrap_err();
    assert!(error.is_timeout(), "reqwest looks through everything: {error:?}");
    assert_eq!(verdict_of_error(&error), Some(Verdict::Permanent));
}

#[tokio::test]
async fn a_request_that_cannot_be_built() {
    assert_verdict(client().get("no uri").send().await, Verdict::Permanent);
    assert_verdict(client().get("ftp://localhost/").send().await, Verdict::Permanent);
}

#[tokio::test]
async fn redirects_without_end() {
    let uri = answers("HTTP/1.1 302 Found\r\nlocation: /\r\nconnection: close\r\n\r\n").await;
    assert_verdict(client().get(uri).send().await, Verdict::Permanent);
}

#[tokio::test]
async fn a_status_made_into_an_error() {
    let uri = answers("HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await;
    let result = client().get(uri).send().await.unwrap().error_for_status();
    let expected = reattempt_http::verdict_of_status(StatusCode::SERVICE_UNAVAILABLE);
    assert_verdict(result, expected);
}

#[tokio::test]
async fn a_body_that_breaks_off_while_it_is_read() {
    let server = serve(async |mut connection| {
        read_head(&mut connection).await;
        connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf").await.unwrap();
    });
    let uri = format!("http://{}/", server.await);
    assert_verdict(client().get(uri).send().await.unwrap().bytes().await, LOST);
}
