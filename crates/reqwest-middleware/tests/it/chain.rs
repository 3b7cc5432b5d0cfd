//! Tests of the place in the chain: the middlewares around it, and the extensions.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::Extensions;
use reattempt::{CallOptions, Report};
use reattempt_reqwest_middleware::ReattemptMiddleware;
use reqwest::Request;
use reqwest_middleware::{ClientBuilder, Middleware, Next, Result};

use crate::support::{Marks, Server, URL, client, policy};

/// A middleware that counts requests and numbers them in a header.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicUsize>);

impl Counter {
    fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

#[async_trait::async_trait]
impl Middleware for Counter {
    async fn handle(
        &self,
        mut request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> Result<reqwest::Response> {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        request.headers_mut().insert("number", number.into());
        next.run(request, extensions).await
    }
}

#[tokio::test(start_paused = true)]
async fn middlewares_after_it_run_each_attempt() {
    let (server, before, after) = (Server::statuses([503, 503]), Counter::default(), Counter::default());
    let client = ClientBuilder::new(reqwest::Client::new())
        .with(before.clone())
        .with(ReattemptMiddleware::new(policy()))
        .with(after.clone())
        .with(server.clone())
        .build();
    let response = client.get(URL).send().await.unwrap();
    assert_eq!((before.count(), after.count()), (1, 3));
    assert_eq!(response.extensions().get::<Report>().unwrap().retries(), 2);
    let numbers = server.seen().into_iter().map(|seen| seen.headers["number"].clone());
    assert_eq!(numbers.collect::<Vec<_>>(), ["0", "1", "2"]);
}

#[tokio::test(start_paused = true)]
async fn extensions_are_those_of_the_last_attempt() {
    let server = Server::statuses([503, 503]);
    let request = client(policy(), &server).get(URL).build().unwrap();
    let mut extensions = Extensions::new();
    extensions.insert(Marks(5));
    let client = client(policy(), &server);
    client.execute_with_extensions(request, &mut extensions).await.unwrap();
    // No attempt sees a mark from an earlier attempt.
    assert_eq!(server.seen().iter().map(|seen| seen.marks).collect::<Vec<_>>(), [5, 5, 5]);
    assert_eq!(extensions.get::<Marks>().unwrap().0, 6);
}

#[tokio::test(start_paused = true)]
async fn options_of_the_call_are_used() {
    let server = Server::statuses([503; 9]);
    let client = client(policy(), &server);
    let send = async |options| client.get(URL).with_extension(options).send().await.unwrap();
    let _ = send(CallOptions::new().max_attempts(5)).await;
    assert_eq!(server.seen().len(), 5);
    let _ = send(CallOptions::new().never_retry()).await;
    assert_eq!(server.seen().len(), 6);
}

#[tokio::test(start_paused = true)]
async fn first_success_has_no_report() {
    let server = Server::default();
    let response = client(policy(), &server).get(URL).send().await.unwrap();
    assert!(response.extensions().get::<Report>().is_none());
}
