//! The addresses of a name with hyper-util and TLS: repeated look-ups, and a client for each address.
//!
//! `cargo run --example endpoints_dns`

mod five_servers;

use std::convert::Infallible;
use std::future::ready;
use std::iter::once;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::service::service_fn as serve_fn;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioIo};
use reattempt::endpoints::Endpoints;
use reattempt::{ReplayBody, RetryLayer, RetryPolicy};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tower::{BoxError, Layer, service_fn};

use five_servers::Turns;

/// The name of the service. The certificate contains this name, and no address.
const NAME: &str = "orders.example";

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let (acceptor, trusting) = tls()?;
    let servers = five_servers::start(|listener, turns| serve(listener, turns, acceptor.clone())).await?;

    // In a program: Endpoints::dns("orders.example:443", Duration::from_secs(30))?
    // Here the first look-up lacks a good server, and later ones return all five.
    let addresses = servers.each_ref().map(|server| server.address);
    let asked = AtomicBool::new(false);
    let resolver = move || {
        let found = if asked.swap(true, Ordering::Relaxed) { &addresses[..] } else { &addresses[..4] };
        ready(Ok::<_, Infallible>(found.to_vec()))
    };

    // The client for an address resolves every name to it. Requests are not rewritten, so `Host` and the name that TLS
    // verifies are those of the service.
    let client_to = move |address: SocketAddr| {
        let fixed = service_fn(move |_: Name| ready(Ok::<_, Infallible>(once(address))));
        let mut connector = HttpConnector::new_with_resolver(fixed);
        connector.enforce_http(false);
        let https: HttpsConnector<_> = HttpsConnectorBuilder::new()
            .with_tls_config(trusting.clone())
            .https_only()
            .enable_http1()
            .wrap_connector(connector);
        Client::builder(TokioExecutor::new()).build::<_, ReplayBody<Empty<Bytes>>>(https)
    };
    let balanced = Endpoints::look_up(Duration::from_secs(1), resolver).connect(client_to).http();
    let endpoints = balanced.endpoints();
    let client = RetryLayer::new(RetryPolicy::http().boxed_errors()).layer(balanced);

    five_servers::call_and_print(&servers, &endpoints, || {
        let client = client.clone();
        async move {
            let request = Request::get(format!("https://{NAME}/orders")).body(Empty::new())?;
            let response = client.send(request).await?;
            let status = response.status();
            response.into_body().collect().await?;
            if status == StatusCode::OK { Ok(()) } else { Err(status.to_string().into()) }
        }
    })
    .await
}

/// Returns the TLS settings of the servers, and those of a client that trusts their certificate.
fn tls() -> Result<(TlsAcceptor, ClientConfig), BoxError> {
    let certified = rcgen::generate_simple_self_signed([NAME.to_owned()])?;
    let certificate = certified.cert.der().clone();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let server = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], certified.signing_key.serialize_der().try_into()?)?;
    let client = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    Ok((TlsAcceptor::from(Arc::new(server)), client))
}

/// Serves HTTP/1.1 over TLS.
fn serve(listener: TcpListener, turns: Turns, acceptor: TlsAcceptor) {
    let answer = move |_| {
        let turns = turns.clone();
        async move {
            let mut response = Response::new(Empty::<Bytes>::new());
            if !turns.take().await {
                *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
            }
            Ok::<_, Infallible>(response)
        }
    };
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            let (acceptor, answer) = (acceptor.clone(), answer.clone());
            tokio::spawn(async move {
                let connection = TokioIo::new(acceptor.accept(connection).await?);
                let served = hyper::server::conn::http1::Builder::new().serve_connection(connection, serve_fn(answer));
                Ok::<_, BoxError>(served.await?)
            });
        }
    });
}
