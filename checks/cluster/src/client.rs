//! The client: retries around endpoints, with a client of hyper-util for each address.

use std::collections::HashMap;
use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::client::legacy::{Client, ResponseFuture};
use hyper_util::rt::TokioExecutor;
use reattempt::ReplayBody;
use rustls::ClientConfig;
use tokio::time::Instant;
use tower::{BoxError, Service};

use reattempt_cluster_check::server::CALL;

pub(crate) type Body = Full<Bytes>;

/// The time for a connection. Its end is proof that no request was sent.
pub(crate) const CONNECT: Duration = Duration::from_millis(250);

/// The attempts of each call, with the address and the moment at which each was sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct Attempts(Arc<Mutex<HashMap<u64, Vec<Attempt>>>>);

pub(crate) type Attempt = (SocketAddr, Instant);

impl Attempts {
    pub(crate) fn of(&self, call: u64) -> Vec<Attempt> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&call).cloned().unwrap_or_default()
    }

    /// Returns all attempts that were sent since this moment.
    pub(crate) fn since(&self, from: Instant) -> Vec<Attempt> {
        let attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.values().flatten().filter(|(_, sent)| *sent >= from).copied().collect()
    }

    fn add(&self, call: u64, address: SocketAddr) {
        let mut attempts = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        attempts.entry(call).or_default().push((address, Instant::now()));
    }
}

/// Makes the clients of a cluster.
#[derive(Debug, Clone)]
pub(crate) struct Maker {
    pub(crate) attempts: Attempts,
    pub(crate) tls: ClientConfig,
    pub(crate) http2: bool,
}

impl Maker {
    /// Makes the client of an address. The name in the request, in TLS and in `Host` is that of the service.
    pub(crate) fn client_to<B>(&self, address: SocketAddr) -> Node<B>
    where
        B: http_body::Body<Data: Send> + Send + 'static,
    {
        let mut connector = HttpConnector::new_with_resolver(Fixed(address));
        connector.enforce_http(false);
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(CONNECT));
        let https = HttpsConnectorBuilder::new().with_tls_config(self.tls.clone()).https_or_http();
        let https = match self.http2 {
            true => https.enable_http2().wrap_connector(connector),
            false => https.enable_http1().wrap_connector(connector),
        };
        let client = Client::builder(TokioExecutor::new()).http2_only(self.http2).build(https);
        Node { address, attempts: self.attempts.clone(), client }
    }
}

/// Resolves every name to one address.
#[derive(Debug, Clone)]
pub(crate) struct Fixed(SocketAddr);

impl Service<Name> for Fixed {
    type Response = std::iter::Once<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        ready(Ok(std::iter::once(self.0)))
    }
}

/// The client of one address, which notes each attempt.
#[derive(Debug)]
pub(crate) struct Node<B = ReplayBody<Body>> {
    address: SocketAddr,
    attempts: Attempts,
    client: Client<HttpsConnector<HttpConnector<Fixed>>, B>,
}

impl<B> Clone for Node<B> {
    fn clone(&self) -> Self {
        Self { address: self.address, attempts: self.attempts.clone(), client: self.client.clone() }
    }
}

impl<B> Service<Request<B>> for Node<B>
where
    B: http_body::Body<Data: Send, Error: Into<BoxError>> + Send + Unpin + 'static,
{
    type Response = Response<Incoming>;
    type Error = hyper_util::client::legacy::Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.client.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> ResponseFuture {
        if let Some(call) = number(&request) {
            self.attempts.add(call, self.address);
        }
        self.client.call(request)
    }
}

fn number<B>(request: &Request<B>) -> Option<u64> {
    request.headers().get(CALL)?.to_str().ok()?.parse().ok()
}

/// Returns an error with its causes.
pub(crate) fn text(error: &BoxError) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}
