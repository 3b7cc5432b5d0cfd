//! kube: the layer below `Client::new`, below `ClientBuilder::new`, and around kube's own stack.

use std::time::Duration;

use ::kube::api::{ListParams, ObjectMeta, PostParams, WatchEvent, WatchParams};
use ::kube::client::{Body, ClientBuilder, ConfigExt};
use ::kube::{Api, Client, Config};
use bytes::Bytes;
use futures_util::{StreamExt, pin_mut};
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use hyper_util::rt::TokioExecutor;
use k8s_openapi::api::core::v1::ConfigMap;
use reattempt::schedule::Constant;
use reattempt::{Http, ReplayBody, RetryLayer, RetryPolicy, profile};
use reattempt_faults::{Reply, Server};
use reattempt_kubernetes::{EndpointSlices, Pod};
use tower::buffer::BufferLayer;
use tower::filter::AsyncFilterLayer;
use tower::{BoxError, ServiceBuilder};

use crate::{Outcome, assert_arrivals, soon};

const LIST: &str = r#"{"apiVersion":"v1","kind":"ConfigMapList","metadata":{},"items":[]}"#;
const SLICES: &str = r#"{
    "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSliceList", "metadata": { "resourceVersion": "1" },
    "items": [{
        "metadata": { "name": "orders-1" }, "addressType": "IPv4", "ports": [{ "name": "http", "port": 8080 }],
        "endpoints": [{ "addresses": ["10.0.0.7"] }]
    }]
}"#;
const OBJECT: &str = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}"#;

fn policy() -> RetryPolicy<Http, Constant> {
    RetryPolicy::http().profile(profile::kubernetes()).backoff(soon())
}

/// The layer is below the base URL, so that it knows the destination.
fn through_client_new(config: &Config) -> Result<Client, BoxError> {
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(RetryLayer::new(policy().boxed_errors()))
        .map_err(BoxError::from)
        .service(hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http());
    Ok(Client::new(service, config.default_namespace.clone()))
}

fn through_client_builder(config: &Config) -> Client {
    let http = hyper_util::client::legacy::Client::builder(TokioExecutor::new()).build_http();
    ClientBuilder::new(ServiceBuilder::new().layer(RetryLayer::new(policy())).service(http), "default")
        .with_layer(&config.base_uri_layer())
        .build()
}

/// kube's own stack has TLS and authentication, but neither clones nor takes a body of another type. Its requests are
/// in memory, so collecting them copies nothing.
fn around_kubes_stack(mut config: Config) -> Result<Client, BoxError> {
    config.default_retry = false;
    let own_body = AsyncFilterLayer::new(async |attempt: Request<ReplayBody<Body>>| {
        let (head, body) = attempt.into_parts();
        Ok::<_, BoxError>(Request::from_parts(head, Body::from(body.collect().await?.to_bytes())))
    });
    Ok(ClientBuilder::try_from(config)?
        .with_layer(&BufferLayer::new(1024))
        .with_layer(&own_body)
        .with_layer(&RetryLayer::new(policy().boxed_errors()))
        .build())
}

pub(crate) async fn run() -> Outcome {
    for way in ["Client::new", "ClientBuilder::new", "ClientBuilder::try_from"] {
        let client = |server: &Server| -> Result<Client, BoxError> {
            let config = Config::new(server.url("").parse()?);
            match way {
                "Client::new" => through_client_new(&config),
                "ClientBuilder::new" => Ok(through_client_builder(&config)),
                _ => around_kubes_stack(config),
            }
        };
        println!("  {way}");

        let server = Server::http1([busy(), Reply::default().body(LIST)]).await?;
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server)?);
        assert!(maps.list(&ListParams::default()).await?.items.is_empty());
        assert_arrivals("a list after a 503", server.ledger(), &["GET", "GET"]);

        // An API server may have stored the object before a 503. kube's own policy repeats this POST.
        let server = Server::http1([busy()]).await?;
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server)?);
        maps.create(&PostParams::default(), &object()).await.unwrap_err();
        assert_arrivals("a create after a 503", server.ledger(), &["POST"]);

        // A 429 with Retry-After was not processed.
        let throttled = Reply::status(StatusCode::TOO_MANY_REQUESTS).header(http::header::RETRY_AFTER, 0.into());
        let server = Server::http1([throttled, Reply::status(StatusCode::CREATED).body(OBJECT)]).await?;
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server)?);
        maps.create(&PostParams::default(), &object()).await?;
        assert_arrivals("a create after a 429", server.ledger(), &["POST", "POST"]);

        // A watch is retried until its head; then its events pass through.
        let event = Bytes::from(format!("{{\"type\":\"ADDED\",\"object\":{OBJECT}}}\n"));
        let server = Server::http1([busy(), Reply::default().body(event)]).await?;
        let maps: Api<ConfigMap> = Api::default_namespaced(client(&server)?);
        let events = maps.watch(&WatchParams::default(), "0").await?;
        pin_mut!(events);
        let first = events.next().await.ok_or("an event")??;
        assert!(matches!(first, WatchEvent::Added(_)), "{first:?}");
        assert!(events.next().await.is_none());
        assert_arrivals("a watch after a 503, with an event", server.ledger(), &["GET", "GET"]);

        // The crate for EndpointSlices takes the client of this kube, which is the newest that it allows.
        let server = Server::http1([busy(), Reply::default().body(SLICES)]).await?;
        let pods = EndpointSlices::new(client(&server)?, "shop", "orders")?.connect(|pod: &Pod| pod.address()).http();
        while pods.endpoints().view().is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        println!("  the pods of a service: {:?}", pods.endpoints().view()[0].name);
    }
    Ok(())
}

fn busy() -> Reply {
    Reply::status(StatusCode::SERVICE_UNAVAILABLE)
}

fn object() -> ConfigMap {
    ConfigMap { metadata: ObjectMeta { name: Some("a".into()), ..ObjectMeta::default() }, ..ConfigMap::default() }
}
