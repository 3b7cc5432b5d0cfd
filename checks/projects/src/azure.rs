//! azure_storage_blob: the layer as the HTTP client of Azure's SDK, with appended blocks marked as not repeatable.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use ::azure_core::error::{Error, ErrorKind, ResultExt};
use ::azure_core::http::headers::Headers;
use ::azure_core::http::request::{Body, Request};
use ::azure_core::http::{AsyncRawResponse, ClientOptions, HttpClient, RequestContent, RetryOptions, Transport};
use ::azure_core::stream::{BytesStream, SeekableStream};
use ::azure_storage_blob::{
    AppendBlobClient, AppendBlobClientOptions, BlobClient, BlobClientOptions, BlobServiceClient,
    BlobServiceClientOptions,
};
use async_trait::async_trait;
use futures_util::TryStreamExt;
use http::header::CONTENT_LENGTH;
use http::{HeaderName, StatusCode};
use http_body_util::BodyExt;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Http, ReqwestExt, Retry, RetryPolicy};
use reattempt_faults::{Reply, Server};
use reqwest::{Client, redirect};
use tower::Layer;

use crate::{Failed, Outcome, assert_arrivals, assert_waited, soon};

const RETRY_AFTER_MS: HeaderName = HeaderName::from_static("x-ms-retry-after-ms");

/// The transport of Azure's clients.
struct Retried {
    builder: Client,
    client: Retry<Client, RetryPolicy<Http, Constant>>,
}

impl Retried {
    fn new(attempts: u32) -> reqwest::Result<Self> {
        let http = Http::new().redirects_below(false).options_for(|request| {
            // A second PUT of a block appends it a second time.
            let appends = request.query().is_some_and(|query| query.contains("comp=appendblock"));
            appends.then(|| CallOptions::new().repeatable(false))
        });
        let plain = Client::builder().no_proxy().redirect(redirect::Policy::none()).retry(reqwest::retry::never());
        let plain = plain.build()?;
        let policy = RetryPolicy::with(http).backoff(soon()).max_attempts(attempts);
        Ok(Self { builder: plain.clone(), client: policy.layer(plain) })
    }
}

impl fmt::Debug for Retried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Retried")
    }
}

#[async_trait]
impl HttpClient for Retried {
    async fn execute_request(&self, request: &Request) -> ::azure_core::Result<AsyncRawResponse> {
        let method = request.method().as_str().parse().with_context(ErrorKind::Other, "an unknown method")?;
        let body = match request.body().clone() {
            Body::Bytes(bytes) => bytes,
            // In memory, because the clones of a file's stream share one position.
            Body::SeekableStream(stream) => {
                let collected = reqwest::Body::wrap_stream(stream).collect().await;
                collected.with_context(ErrorKind::Io, "the request body broke off")?.to_bytes()
            }
        };
        let mut sent = self.builder.request(method, request.url().clone()).body(body);
        for (name, value) in request.headers().iter() {
            sent = sent.header(name.as_str(), value.as_str());
        }
        let response = sent.send_with(&self.client).await.with_context(ErrorKind::Io, "the request failed")?;
        let mut headers = Headers::new();
        for (name, value) in response.headers() {
            if let Ok(value) = value.to_str() {
                headers.insert(name.as_str().to_owned(), value.to_owned());
            }
        }
        let status = response.status().as_u16().into();
        let body = response.bytes_stream().map_err(|error| Error::new(ErrorKind::Io, error));
        Ok(AsyncRawResponse::new(status, headers, Box::pin(body)))
    }
}

fn options(retry: RetryOptions, attempts: u32) -> reqwest::Result<ClientOptions> {
    let transport = Some(Transport::new(Arc::new(Retried::new(attempts)?)));
    Ok(ClientOptions { transport, retry, ..ClientOptions::default() })
}

/// The layer, without Azure's own retries.
fn with_layer() -> reqwest::Result<ClientOptions> {
    options(RetryOptions::none(), 3)
}

/// Azure's own retries, as they are by default, with a transport that does not retry.
fn with_own_retries() -> reqwest::Result<ClientOptions> {
    options(RetryOptions::default(), 1)
}

fn blob(server: &Server, client_options: ClientOptions) -> Result<BlobClient, Failed> {
    let options = BlobClientOptions { client_options, ..BlobClientOptions::default() };
    Ok(BlobClient::new(server.url("/container/blob").parse()?, None, Some(options))?)
}

async fn append(server: &Server, client_options: ClientOptions) -> Result<(), Failed> {
    let options = AppendBlobClientOptions { client_options, ..AppendBlobClientOptions::default() };
    let log = AppendBlobClient::new(server.url("/container/log").parse()?, None, Some(options))?;
    log.append_block(RequestContent::from_static(b"line"), 4, None).await?;
    Ok(())
}

async fn delegation_key(server: &Server, client_options: ClientOptions) -> Result<(), Failed> {
    let options = BlobServiceClientOptions { client_options, ..BlobServiceClientOptions::default() };
    let service = BlobServiceClient::new(server.url("/").parse()?, None, Some(options))?;
    service.get_user_delegation_key(RequestContent::from_static(b"<KeyInfo/>"), None).await?;
    Ok(())
}

pub(crate) async fn run() -> Outcome {
    let busy = || Reply::status(StatusCode::SERVICE_UNAVAILABLE);
    let created = || Reply::status(StatusCode::CREATED);

    let server = Server::http1([busy(), Reply::default()]).await?;
    blob(&server, with_layer()?)?.get_properties(None).await?;
    assert_arrivals("a HEAD after a 503", server.ledger(), &["HEAD", "HEAD"]);

    let server = Server::http1([busy().header(RETRY_AFTER_MS, 300.into()), Reply::default()]).await?;
    blob(&server, with_layer()?)?.get_properties(None).await?;
    assert_arrivals("a HEAD after a 503 with x-ms-retry-after-ms: 300", server.ledger(), &["HEAD", "HEAD"]);
    assert_waited(server.ledger(), Duration::from_millis(300));

    let data = vec![b'a'; 200_000];
    let server = Server::http1([Reply::reset(), created()]).await?;
    let stream: Box<dyn SeekableStream> = Box::new(BytesStream::new(data.clone()));
    blob(&server, with_layer()?)?.upload(Body::from(stream).into(), None).await?;
    assert_arrivals("an upload of 200 kB from a stream after a reset", server.ledger(), &["PUT", "PUT"]);
    assert_eq!(server.ledger().arrivals()[1].body, data);
    assert!(server.ledger().arrivals().iter().all(|arrival| arrival.headers.contains_key(CONTENT_LENGTH)));

    // The block may have been appended. The rule for its query keeps this PUT from being sent twice.
    for (failure, reply) in [("a 503", busy()), ("a reset", Reply::reset())] {
        let server = Server::http1([reply.clone()]).await?;
        append(&server, with_layer()?).await.unwrap_err();
        assert_arrivals(&format!("an appended block after {failure}"), server.ledger(), &["PUT"]);

        let server = Server::http1([reply, created()]).await?;
        append(&server, with_own_retries()?).await?;
        assert_arrivals(&format!("Azure's own, an appended block after {failure}"), server.ledger(), &["PUT", "PUT"]);
    }

    let server = Server::http1([busy()]).await?;
    delegation_key(&server, with_layer()?).await.unwrap_err();
    assert_arrivals("a POST after a 503", server.ledger(), &["POST"]);

    let server = Server::http1([busy(), Reply::default().body("<UserDelegationKey/>")]).await?;
    delegation_key(&server, with_own_retries()?).await?;
    assert_arrivals("Azure's own, a POST after a 503", server.ledger(), &["POST", "POST"]);
    Ok(())
}
