//! object_store: the layer as its HTTP connector, with S3's bulk delete marked as repeatable.

use std::fmt;

use ::object_store::aws::{AmazonS3, AmazonS3Builder};
use ::object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpRequestBody, HttpResponse, HttpResponseBody,
    HttpService,
};
use ::object_store::path::Path;
use ::object_store::{ClientOptions, ObjectStore, ObjectStoreExt, PutPayload, RetryConfig};
use async_trait::async_trait;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use http::header::ETAG;
use http::{HeaderValue, StatusCode};
use http_body_util::BodyExt;
use hyper_util::client::legacy::{Client, connect};
use hyper_util::rt::TokioExecutor;
use reattempt::body::ReplayLimits;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Http, ReplayBody, Retry, RetryPolicy};
use reattempt_faults::{Reply, Server};
use tower::{ServiceBuilder, ServiceExt};

use crate::{Outcome, assert_arrivals, soon};

type Inner = Client<connect::HttpConnector, ReplayBody<HttpRequestBody>>;

/// The client of a store, which the store's builder takes.
#[derive(Clone)]
struct Retried(Retry<Inner, RetryPolicy<Http, Constant>>);

impl Retried {
    fn new() -> Self {
        let http = Http::new()
            // A payload has several parts, so it counts as streamed.
            .replay(ReplayLimits::default().per_call(8 * 1024 * 1024))
            // A second delete of the same keys does nothing.
            .options_for(|request| {
                let bulk_delete = request.method() == "POST" && request.query() == Some("delete");
                bulk_delete.then(|| CallOptions::new().repeatable(true))
            });
        let client = Client::builder(TokioExecutor::new()).build_http();
        Self(ServiceBuilder::new().layer(RetryPolicy::with(http).backoff(soon())).service(client))
    }
}

impl fmt::Debug for Retried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Retried")
    }
}

#[async_trait]
impl HttpService for Retried {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let response = self.0.clone().oneshot(request).await.map_err(|e| HttpError::new(HttpErrorKind::Unknown, e))?;
        let interrupted = |error| HttpError::new(HttpErrorKind::Interrupted, error);
        Ok(response.map(|body| HttpResponseBody::new(body.map_err(interrupted))))
    }
}

impl HttpConnector for Retried {
    fn connect(&self, _: &ClientOptions) -> ::object_store::Result<HttpClient> {
        Ok(HttpClient::new(self.clone()))
    }
}

fn store(server: &Server) -> ::object_store::Result<AmazonS3> {
    AmazonS3Builder::new()
        .with_bucket_name("bucket")
        .with_region("eu")
        .with_access_key_id("key")
        .with_secret_access_key("secret")
        .with_endpoint(server.url(""))
        .with_allow_http(true)
        .with_http_connector(Retried::new())
        .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
        .build()
}

pub(crate) async fn run() -> Outcome {
    let (slow_down, stored) = (Reply::status(StatusCode::SERVICE_UNAVAILABLE), Reply::default());
    let stored = stored.header(ETAG, HeaderValue::from_static("\"1\""));
    let path = Path::from("a");
    let parts: [Vec<u8>; 4] = std::array::from_fn(|part| vec![b'a' + part as u8; 50_000]);

    let server = Server::http1([slow_down.clone(), stored.clone()]).await?;
    let payload: PutPayload = parts.iter().cloned().map(Bytes::from).collect();
    store(&server)?.put(&path, payload).await?;
    assert_arrivals("a PUT of 200 kB in four parts after a 503", server.ledger(), &["PUT", "PUT"]);
    assert_eq!(server.ledger().arrivals()[1].body, parts.concat());

    // In one part, and the connection breaks.
    let server = Server::http1([Reply::reset(), stored]).await?;
    store(&server)?.put(&path, PutPayload::from(parts.concat())).await?;
    assert_arrivals("a PUT of 200 kB after a reset", server.ledger(), &["PUT", "PUT"]);
    assert_eq!(server.ledger().arrivals()[1].body, parts.concat());

    let deleted = Reply::default().body("<DeleteResult><Deleted><Key>a</Key></Deleted></DeleteResult>");
    let server = Server::http1([slow_down.clone(), deleted]).await?;
    let store_of_server = store(&server)?;
    let paths = stream::iter([Ok(path.clone())]).boxed();
    let results: Vec<_> = store_of_server.delete_stream(paths).collect().await;
    results.into_iter().collect::<Result<Vec<_>, _>>()?;
    assert_arrivals("a bulk delete after a 503", server.ledger(), &["POST", "POST"]);

    // A second upload would be left over. object_store's own policy repeats this POST.
    let server = Server::http1([slow_down]).await?;
    store(&server)?.put_multipart(&path).await.unwrap_err();
    assert_arrivals("the start of an upload after a 503", server.ledger(), &["POST"]);
    Ok(())
}
