//! Tests with connectors and resolvers of the caller's own. Whatever fails while connecting has sent nothing, so an
//! unknown error is "no connection".

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::Connect;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tower::timeout::Timeout;
use tower::{BoxError, ServiceExt, service_fn};

use super::*;

type Io = TokioIo<TcpStream>;

/// An error of a type that the library does not know, without a source.
#[derive(Debug)]
struct Unknown;

impl std::fmt::Display for Unknown {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the mesh is not ready")
    }
}

impl Error for Unknown {}

/// Errors that another attempt may not meet.
const FOR_NOW: [fn() -> BoxError; 8] = [
    || Box::new(Unknown),
    || "no tunnel yet".into(),
    || "could not fetch the client certificate: the agent did not answer".into(),
    || std::io::Error::other("quic: handshake timed out").into(),
    || std::io::Error::new(ErrorKind::InvalidData, "received corrupt message of type InvalidContentType").into(),
    || std::io::Error::from(ErrorKind::NotFound).into(),
    || Box::new(std::fmt::Error),
    || Box::new(tower::timeout::error::Elapsed::new()),
];

/// Errors that every attempt meets.
const FINAL: [fn() -> BoxError; 8] = [
    || "unsupported scheme ftp".into(),
    || std::io::Error::other("missing scheme").into(),
    || Box::new("::".parse::<http::Uri>().unwrap_err()),
    || std::io::Error::from(ErrorKind::InvalidInput).into(),
    || std::io::Error::from(ErrorKind::PermissionDenied).into(),
    || std::io::Error::from(ErrorKind::Unsupported).into(),
    || "invalid peer certificate: UnknownIssuer".into(),
    || "the proxy refused CONNECT: 403 Forbidden".into(),
];

async fn error_of(connector: impl Connect + Clone + Send + Sync + 'static) -> legacy::Error {
    let client: Client<_, Body> = builder().build(connector);
    client.request(get("http://server.example/")).await.unwrap_err()
}

async fn error_of_connector(error: fn() -> BoxError) -> legacy::Error {
    error_of(service_fn(move |_: http::Uri| std::future::ready(Err::<Io, _>(error())))).await
}

// trap 63
#[tokio::test]
async fn unknown_connector_is_no_connection() {
    for error in FOR_NOW {
        let error = error_of_connector(error).await;
        assert_eq!(verdict_of_error(&error), Some(NOT_CONNECTED), "{error:?}");
        assert_eq!(fault_of_error(&error), None, "{error:?}");
        assert_eq!(undone(&error), None, "a connector that fails is not called again at once: {error:?}");
    }
}

// trap 63
#[tokio::test]
async fn connector_that_refuses_is_final() {
    for error in FINAL {
        let error = error_of_connector(error).await;
        assert_eq!(verdict_of_error(&error), Some(Verdict::Permanent), "{error:?}");
    }
}

// trap 63
#[tokio::test(start_paused = true)]
async fn connector_timeout_is_no_connection() {
    let pending = service_fn(|_: http::Uri| std::future::pending::<Result<Io, BoxError>>());
    let limited = Timeout::new(pending, Duration::from_secs(5));
    let error = error_of(service_fn(move |uri| Box::pin(limited.clone().oneshot(uri)))).await;
    assert_eq!(verdict_of_error(&error), Some(NOT_CONNECTED), "{error:?}");
}

/// The text of a resolver's error may contain any name. It is never final.
// field 12, trap 63
#[tokio::test]
async fn failed_resolver_is_no_connection() {
    let texts = ["timed out", "no record found for unsupported-scheme.example.", "invalid peer certificate: Expired"];
    for text in texts {
        let resolver =
            service_fn(move |_: Name| async move { Err::<std::vec::IntoIter<SocketAddr>, BoxError>(text.into()) });
        let error = error_of(HttpConnector::new_with_resolver(resolver)).await;
        assert_on_the_way(text, &error, NOT_CONNECTED);
    }
}

/// A connector may fail before it is called.
// trap 63
#[tokio::test]
async fn resolver_never_ready_is_no_connection() {
    #[derive(Clone)]
    struct NeverReady;

    impl tower::Service<Name> for NeverReady {
        type Response = std::vec::IntoIter<SocketAddr>;
        type Error = BoxError;
        type Future = std::future::Ready<Result<Self::Response, BoxError>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
            Poll::Ready(Err("the resolver has stopped".into()))
        }

        fn call(&mut self, _: Name) -> Self::Future {
            unreachable!("it is never ready")
        }
    }

    let error = error_of(HttpConnector::new_with_resolver(NeverReady)).await;
    assert_on_the_way("stopped", &error, NOT_CONNECTED);
}

#[cfg(feature = "tonic")]
mod tonic {
    use ::tonic::body::Body;
    use ::tonic::client::GrpcService;
    use ::tonic::transport::{Channel, Endpoint};

    use super::*;

    async fn error_of(mut channel: Channel) -> ::tonic::transport::Error {
        std::future::poll_fn(|cx| channel.poll_ready(cx)).await.unwrap();
        channel.call(Request::post("/service/method").body(Body::empty()).unwrap()).await.unwrap_err()
    }

    // trap 63
    #[tokio::test]
    async fn channel_connector_by_its_error() {
        let endpoint = Endpoint::from_static("http://server.example");
        let cases = FOR_NOW.map(|error| (error, NOT_CONNECTED)).into_iter();
        for (error, expected) in cases.chain(FINAL.map(|error| (error, Verdict::Permanent))) {
            let connector = service_fn(move |_: http::Uri| std::future::ready(Err::<Io, _>(error())));
            let lazy = error_of(endpoint.connect_with_connector_lazy(connector)).await;
            assert_eq!(verdict_of_error(&lazy), Some(expected), "{lazy:?}");
            let eager = endpoint.connect_with_connector(connector).await.unwrap_err();
            assert_eq!(verdict_of_error(&eager), Some(expected), "{eager:?}");
        }
    }

    // trap 63
    #[tokio::test(start_paused = true)]
    async fn channel_not_connected_in_time() {
        let endpoint = Endpoint::from_static("http://server.example").connect_timeout(Duration::from_secs(5));
        let pending = service_fn(|_: http::Uri| std::future::pending::<Result<Io, BoxError>>());
        let error = error_of(endpoint.connect_with_connector_lazy(pending)).await;
        assert_eq!(verdict_of_error(&error), Some(NOT_CONNECTED), "{error:?}");
    }
}
