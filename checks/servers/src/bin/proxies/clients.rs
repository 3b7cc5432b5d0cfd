//! The clients: hyper-util and reqwest over HTTP/1.1 and HTTP/2, and a channel of tonic, each below a retry layer.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::uri::PathAndQuery;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::grpc::Grpc;
use reattempt::grpc::peek_trailers::PeekTrailersLayer;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Http, RetryBudget, RetryLayer, RetryPolicy};
use reattempt_cluster_check::server::CALL;
use tonic::transport::Endpoint;
use tonic_prost::ProstCodec;
use tower::{BoxError, Layer, ServiceExt};

use crate::calls::{Kind, Send};
use crate::proxy::Proxy;

/// The attempts of a call, and the time in which they are made. The budget is unlimited: while one of two back ends is
/// gone, half of all calls fail, and the default budget does not pay for that.
const ATTEMPTS: u32 = 12;
const WITHIN: Duration = Duration::from_secs(20);

/// The time that a gRPC call waits for the first frame of its response.
const PEEK: Duration = Duration::from_millis(100);

/// Returns each client that calls through the proxy, with its name.
pub(crate) fn all(proxy: &Proxy) -> Result<Vec<(&'static str, Send)>, BoxError> {
    let is_proof = !proxy.lies;
    Ok(vec![
        ("hyper-util, HTTP/1.1", hyper(proxy.http1, false, is_proof)),
        ("hyper-util, HTTP/2", hyper(proxy.http2, true, is_proof)),
        ("reqwest, HTTP/1.1", reqwest(proxy.http1, false, is_proof)?),
        ("reqwest, HTTP/2", reqwest(proxy.http2, true, is_proof)?),
        ("tonic, gRPC", tonic(proxy.grpc, is_proof)?),
    ])
}

fn policy(refused_stream_is_proof: bool) -> RetryPolicy<Http> {
    // Neither client follows redirects.
    let http = Http::new().redirects_below(false).refused_stream_is_proof(refused_stream_is_proof);
    RetryPolicy::with(http).max_attempts(ATTEMPTS).max_elapsed(WITHIN).budget(RetryBudget::unlimited())
}

fn hyper(address: SocketAddr, http2: bool, is_proof: bool) -> Send {
    let client = Client::builder(TokioExecutor::new()).http2_only(http2).build_http();
    let client = RetryLayer::new(policy(is_proof)).layer(client);
    Rc::new(move |kind, number, slot| {
        let (client, request) = (client.clone(), request(address, kind, number, slot)?);
        Ok(Box::pin(async move {
            let response = client.oneshot(request.map(Full::new)).await?;
            let status = response.status();
            response.into_body().collect().await?;
            if status.is_success() { Ok(()) } else { Err(status.to_string().into()) }
        }))
    })
}

fn reqwest(address: SocketAddr, http2: bool, is_proof: bool) -> Result<Send, BoxError> {
    let builder = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none());
    let builder = builder.retry(reqwest::retry::never());
    let client = if http2 { builder.http2_prior_knowledge() } else { builder.http1_only() }.build()?;
    let client = RetryLayer::new(policy(is_proof)).layer(client);
    Ok(Rc::new(move |kind, number, slot| {
        let request = reqwest::Request::try_from(request(address, kind, number, slot)?)?;
        // reqwest's requests carry no options.
        let client = client.with_options(CallOptions::new().report_to(slot));
        Ok(Box::pin(async move {
            client.oneshot(request).await?.error_for_status()?.bytes().await?;
            Ok(())
        }))
    }))
}

fn tonic(address: SocketAddr, is_proof: bool) -> Result<Send, BoxError> {
    let channel = Endpoint::from_shared(format!("http://{address}"))?.connect_lazy();
    let policy = RetryPolicy::with(Grpc::new().refused_stream_is_proof(is_proof));
    let policy = policy.max_attempts(ATTEMPTS).max_elapsed(WITHIN).budget(RetryBudget::unlimited());
    // haproxy passes on a head and nothing more if its back end dies after it. A head that has passed ends the retries.
    let client = RetryLayer::new(policy).layer(PeekTrailersLayer::new(PEEK).layer(channel));
    Ok(Rc::new(move |kind, number, slot| {
        let mut request = tonic::Request::new(());
        request.metadata_mut().insert(CALL, number.into());
        request.extensions_mut().insert(CallOptions::new().repeatable(kind != Kind::Once).report_to(slot));
        let mut client = tonic::client::Grpc::new(client.clone());
        Ok(Box::pin(async move {
            client.ready().await?;
            let path = PathAndQuery::from_static("/check.Service/Call");
            client.unary::<(), (), _>(request, path, ProstCodec::default()).await?;
            Ok(())
        }))
    }))
}

/// Returns the request of a call over HTTP.
pub(crate) fn request(
    address: SocketAddr,
    kind: Kind,
    number: u64,
    slot: &ReportSlot,
) -> Result<Request<Bytes>, http::Error> {
    let method = if kind == Kind::Safe { Method::GET } else { Method::POST };
    let mut request = Request::builder().method(method).uri(format!("http://{address}/")).header(CALL, number);
    if kind == Kind::Keyed {
        request = request.header("idempotency-key", format!("call-{number}"));
    }
    let body = if kind == Kind::Safe { Bytes::new() } else { Bytes::from_static(b"once") };
    request.extension(CallOptions::new().report_to(slot)).body(body)
}
