//! gcloud-storage: the layer as a middleware of its HTTP client, with conditional writes marked as repeatable.

use std::time::Duration;

use ::gcloud_storage::client::{Client, ClientConfig};
use ::gcloud_storage::http::Error;
use ::gcloud_storage::http::objects::get::GetObjectRequest;
use ::gcloud_storage::http::objects::upload::{Media, UploadObjectRequest, UploadType};
use http::StatusCode;
use http::header::RETRY_AFTER;
use reattempt::{CallOptions, Http, RetryPolicy};
use reattempt_faults::{Reply, Server};
use reattempt_reqwest_middleware::ReattemptMiddleware;
use reqwest::redirect;
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware};
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;

use crate::{Outcome, assert_arrivals, assert_waited, soon};

const OBJECT: &str = r#"{
    "bucket": "bucket", "generation": "1", "id": "bucket/a/1", "mediaLink": "link", "metageneration": "1", "name": "a",
    "selfLink": "link"
}"#;

fn plain() -> reqwest::Result<ClientBuilder> {
    let plain = reqwest::Client::builder().no_proxy().redirect(redirect::Policy::none()).retry(reqwest::retry::never());
    Ok(ClientBuilder::new(plain.build()?))
}

fn retried() -> reqwest::Result<ClientWithMiddleware> {
    let http = Http::new().redirects_below(false).options_for(|request| {
        // A write of this generation cannot happen twice: the second gets a 412.
        let query = request.query().unwrap_or_default();
        query.split('&').any(|pair| pair.starts_with("ifGenerationMatch=")).then(|| CallOptions::new().repeatable(true))
    });
    Ok(plain()?.with(ReattemptMiddleware::new(RetryPolicy::with(http).backoff(soon()))).build())
}

/// The chain in gcloud-storage's documentation, with short delays.
fn with_reqwest_retry() -> reqwest::Result<ClientWithMiddleware> {
    let delays = ExponentialBackoff::builder().retry_bounds(Duration::from_millis(1), Duration::from_millis(5));
    let middleware = RetryTransientMiddleware::new_with_policy(delays.build_with_max_retries(3));
    Ok(plain()?.with(middleware).build())
}

fn client(server: &Server, http: ClientWithMiddleware) -> Client {
    let config = ClientConfig { http: Some(http), storage_endpoint: server.url(""), ..ClientConfig::default() };
    Client::new(config.anonymous())
}

async fn upload(client: &Client, if_generation_match: Option<i64>) -> Result<(), Error> {
    let request = UploadObjectRequest { bucket: "bucket".into(), if_generation_match, ..Default::default() };
    client.upload_object(&request, "data", &UploadType::Simple(Media::new("a"))).await.map(drop)
}

pub(crate) async fn run() -> Outcome {
    let busy = || Reply::status(StatusCode::SERVICE_UNAVAILABLE);
    let object = || Reply::default().body(OBJECT);
    let get = GetObjectRequest { bucket: "bucket".into(), object: "a".into(), ..Default::default() };

    let server = Server::http1([busy(), object()]).await?;
    client(&server, retried()?).get_object(&get).await?;
    assert_arrivals("a GET after a 503", server.ledger(), &["GET", "GET"]);

    let server = Server::http1([busy().header(RETRY_AFTER, 1.into()), object()]).await?;
    client(&server, retried()?).get_object(&get).await?;
    assert_arrivals("a GET after a 503 with Retry-After: 1", server.ledger(), &["GET", "GET"]);
    assert_waited(server.ledger(), Duration::from_secs(1));

    // The object may have been written, and a second write may replace a newer one.
    let server = Server::http1([busy()]).await?;
    upload(&client(&server, retried()?), None).await.unwrap_err();
    assert_arrivals("an upload after a 503", server.ledger(), &["POST"]);

    let server = Server::http1([busy(), object()]).await?;
    upload(&client(&server, with_reqwest_retry()?), None).await?;
    assert_arrivals("with reqwest-retry, an upload after a 503", server.ledger(), &["POST", "POST"]);

    let server = Server::http1([Reply::reset(), object()]).await?;
    upload(&client(&server, retried()?), Some(0)).await?;
    assert_arrivals("an upload of generation 0 after a reset", server.ledger(), &["POST", "POST"]);

    // A 429 proves that nothing was written.
    let server = Server::http1([Reply::status(StatusCode::TOO_MANY_REQUESTS), object()]).await?;
    upload(&client(&server, retried()?), None).await?;
    assert_arrivals("an upload after a 429", server.ledger(), &["POST", "POST"]);
    Ok(())
}
