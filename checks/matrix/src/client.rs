//! The clients under test: each library below each stack, boxed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::{BoxBody, UnsyncBoxBody};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client as HyperClient;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::endpoints::{Endpoints, EndpointsLayer};
use reattempt::error::BoxedError;
use reattempt::grpc::Grpc;
use reattempt::guard::{Bulkhead, CircuitBreaker};
use reattempt::hedge::{HedgeLayer, HedgePolicy};
use reattempt::schedule::Constant;
use reattempt::standard::{StandardGuards, StandardLayer};
use reattempt::{Http, ReplayBody, RetryLayer, RetryPolicy};
use reattempt_faults::Tls;
use reattempt_testing::PermitCount;
use rustls::{ClientConfig, RootCertStore};
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tower::util::BoxCloneService;
use tower::{BoxError, ServiceBuilder};

use crate::cell::{Library, Protocol, Security, Stack};
use crate::exchange::{Exchange, Gate};
use crate::leaks::Leaks;

/// Passes only when the check moves the clock.
pub(crate) const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(10);
pub(crate) const HEDGE_DELAY: Duration = Duration::from_secs(1);

/// Longer than everything that a cell waits for.
const TOTAL_TIME: Duration = Duration::from_secs(3600);

pub(crate) type RequestBody = BoxBody<Bytes, Infallible>;
pub(crate) type Answer = Response<UnsyncBoxBody<Bytes, BoxError>>;

/// A client, by the kind of its requests.
pub(crate) enum Client {
    Http(BoxCloneService<Request<RequestBody>, Answer, BoxError>),
    Reqwest(BoxCloneService<reqwest::Request, Answer, BoxError>),
    Grpc(BoxCloneService<Request<tonic::body::Body>, Answer, BoxError>),
}

impl Target<'_> {
    fn url(&self, exchange: &Exchange, address: SocketAddr) -> String {
        crate::run::url(exchange.cell.security, address)
    }

    /// Returns a configuration that trusts the certificate.
    fn trusting(&self) -> Result<ClientConfig, BoxError> {
        let mut roots = RootCertStore::empty();
        roots.add(self.tls.certificate_der().to_vec().into())?;
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        Ok(config.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth())
    }
}

/// The servers of a cell, with the certificate that a client trusts.
pub(crate) struct Target<'a> {
    pub(crate) addresses: &'a [SocketAddr],
    pub(crate) tls: &'a Tls,
}

/// Puts the stack of the cell around a client, and boxes the bodies and errors.
macro_rules! stacked {
    ($exchange:expr, $target:expr, $leaks:expr, $protocol:expr, $standard:expr, $inner:expr) => {
        stacked!($exchange, $target, $leaks, $protocol, $standard, $inner.clone(), $inner)
    };
    ($exchange:expr, $target:expr, $leaks:expr, $protocol:expr, $standard:expr, $inner:expr, $bare:expr) => {{
        let (leaks, inner) = ($leaks, $inner);
        let retries = RetryPolicy::with($protocol).backoff(Constant::immediate()).max_elapsed(None);
        let retries = retries.budget(leaks.budget()).attempt_timeout(ATTEMPT_TIMEOUT);
        match $exchange.cell.stack {
            Stack::Bare => boxed_service!($bare),
            Stack::Retry => boxed_service!(ServiceBuilder::new().layer(RetryLayer::new(retries)).service(inner)),
            Stack::Hedge => {
                let hedges = HedgePolicy::with($protocol).delay(HEDGE_DELAY).max_elapsed(None).budget(leaks.budget());
                boxed_service!(ServiceBuilder::new().layer(HedgeLayer::new(hedges)).service(inner))
            }
            Stack::Standard => {
                // Neither guard is to refuse a call here.
                let breaker = CircuitBreaker::rate().consecutive_failures(10_000).min_calls(10_000);
                let bulkhead = Bulkhead::new(1_000);
                leaks.watch(&breaker, &bulkhead);
                let layer = $standard(leaks).limits(breaker, bulkhead).total_time(TOTAL_TIME);
                boxed_service!(ServiceBuilder::new().layer(layer.attempt_timeout(ATTEMPT_TIMEOUT)).service(inner))
            }
            Stack::Endpoints => {
                let urls = $target.addresses.iter().map(|address| $target.url($exchange, *address));
                let layer = EndpointsLayer::with($protocol, Endpoints::urls(urls)?);
                leaks.watch_endpoints(layer.endpoints());
                let retries = ServiceBuilder::new().layer(RetryLayer::new(retries));
                boxed_service!(retries.layer(layer).service(inner))
            }
        }
    }};
}

/// Boxes a service with its bodies and errors.
macro_rules! boxed_service {
    ($service:expr) => {
        BoxCloneService::new(
            ServiceBuilder::new()
                .map_err(Into::<BoxError>::into)
                .map_response(|answer| boxed_body(Response::from(answer)))
                .service($service),
        )
    };
}

pub(crate) fn client(exchange: &Arc<Exchange>, target: &Target<'_>, leaks: &mut Leaks) -> Result<Client, BoxError> {
    let cell = exchange.cell;
    Ok(match (cell.library, cell.protocol.is_grpc()) {
        (Library::Tonic, _) => Client::Grpc(tonic(exchange, target, leaks)?),
        (Library::Reqwest, _) => {
            let inner = gated(reqwest(exchange, target)?, exchange);
            let protocol = || Http::new().redirects_below(false);
            let standard = |leaks: &Leaks| standard_http(leaks, protocol());
            Client::Reqwest(stacked!(exchange, target, leaks, protocol(), standard, inner))
        }
        (Library::HyperUtil, true) => {
            let inner = gated(hyper::<tonic::body::Body>(exchange, target)?, exchange);
            Client::Grpc(stacked!(exchange, target, leaks, Grpc::new(), standard_grpc, inner))
        }
        (Library::HyperUtil, false) => {
            let inner = gated(hyper::<ReplayBody<RequestBody>>(exchange, target)?, exchange);
            let standard = |leaks: &Leaks| standard_http(leaks, Http::new());
            let bare = gated(hyper::<RequestBody>(exchange, target)?, exchange);
            Client::Http(stacked!(exchange, target, leaks, Http::new(), standard, inner, bare))
        }
    })
}

type StandardHttp = StandardLayer<StandardGuards, RetryPolicy<Http, Constant, PermitCount, BoxedError>>;
type StandardGrpc = StandardLayer<StandardGuards, RetryPolicy<Grpc, Constant, PermitCount>>;

fn standard_http(leaks: &Leaks, protocol: Http) -> StandardHttp {
    let retries = RetryPolicy::with(protocol).boxed_errors().backoff(Constant::immediate()).max_elapsed(None);
    StandardLayer::http().retry(retries.budget(leaks.budget()))
}

fn standard_grpc(leaks: &Leaks) -> StandardGrpc {
    let retries = RetryPolicy::grpc().backoff(Constant::immediate()).max_elapsed(None);
    StandardLayer::grpc().retry(retries.budget(leaks.budget()))
}

fn gated<S>(inner: S, exchange: &Arc<Exchange>) -> Gate<S> {
    Gate { inner, exchange: Arc::clone(exchange) }
}

fn boxed_body<B>(answer: Response<B>) -> Answer
where
    B: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
{
    answer.map(|body| body.map_err(Into::into).boxed_unsync())
}

fn hyper<B>(exchange: &Exchange, target: &Target<'_>) -> Result<Hyper<B>, BoxError>
where
    B: http_body::Body<Data: Send> + Send,
{
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let http2 = exchange.cell.protocol != Protocol::Http1;
    let builder = HttpsConnectorBuilder::new().with_tls_config(target.trusting()?).https_or_http();
    let connector = match http2 {
        true => builder.enable_http2().wrap_connector(connector),
        false => builder.enable_http1().wrap_connector(connector),
    };
    Ok(HyperClient::builder(TokioExecutor::new()).http2_only(http2).build(connector))
}

type Hyper<B> = HyperClient<HttpsConnector<HttpConnector>, B>;

fn reqwest(exchange: &Exchange, target: &Target<'_>) -> Result<reqwest::Client, BoxError> {
    let http2 = exchange.cell.protocol != Protocol::Http1;
    let mut config = target.trusting()?;
    config.alpn_protocols = vec![if http2 { b"h2".to_vec() } else { b"http/1.1".to_vec() }];
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .tls_backend_preconfigured(config);
    // The client alone keeps its own retries.
    let builder = if exchange.cell.stack == Stack::Bare { builder } else { builder.retry(reqwest::retry::never()) };
    Ok(if http2 { builder.http2_prior_knowledge() } else { builder.http1_only() }.build()?)
}

fn tonic(exchange: &Arc<Exchange>, target: &Target<'_>, leaks: &mut Leaks) -> Result<GrpcClient, BoxError> {
    let channel = |address| -> Result<Gate<Channel>, BoxError> {
        let mut endpoint = Endpoint::from_shared(target.url(exchange, address))?;
        if exchange.cell.security == Security::Tls {
            let trusted = Certificate::from_pem(target.tls.certificate_pem());
            endpoint = endpoint.tls_config(ClientTlsConfig::new().ca_certificate(trusted))?;
        }
        Ok(gated(endpoint.connect_lazy(), exchange))
    };
    let first = channel(target.addresses[0])?;
    if exchange.cell.stack != Stack::Endpoints {
        return Ok(stacked!(exchange, target, leaks, Grpc::new(), standard_grpc, first));
    }
    // A channel for each server.
    let mut channels = HashMap::new();
    for address in target.addresses {
        channels.insert(*address, channel(*address)?);
    }
    let endpoints = Endpoints::list(target.addresses.iter().copied())?;
    let balanced = endpoints.connect(move |address| channels[&address].clone()).grpc();
    leaks.watch_endpoints(balanced.endpoints());
    let retries = RetryPolicy::grpc().backoff(Constant::immediate()).max_elapsed(None);
    let retries = retries.budget(leaks.budget()).attempt_timeout(ATTEMPT_TIMEOUT);
    Ok(boxed_service!(ServiceBuilder::new().layer(RetryLayer::new(retries)).service(balanced)))
}

type GrpcClient = BoxCloneService<Request<tonic::body::Body>, Answer, BoxError>;
