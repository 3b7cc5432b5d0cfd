//! The HTTP client, the layer around it, and the one call.

use std::sync::Arc;

use http::Request;
use http_body_util::{BodyExt, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::classify::Hints;
use reattempt::error::BoxedError;
use reattempt::report::ReportSlot;
use reattempt::schedule::SharedSchedule;
use reattempt::{CallOptions, Http, RetryBudget, RetryLayer, RetryPolicy};
use rustls::{ClientConfig, RootCertStore};
use tokio::time::Instant;
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

use super::{Ended, Get};
use crate::error::LabError;
use crate::policy::Policy;

/// Makes the call. If `watched`, it prints each event on standard error as it occurs.
pub(super) async fn call(get: &Get, policy: &Policy, seed: Option<u64>, watched: bool) -> Result<Ended, LabError> {
    let connector = connector(get.url.scheme_str() == Some("https"))?;
    // Retries inside the client would be missing in the time line.
    let client = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build(connector);
    let mut service = ServiceBuilder::new().layer(RetryLayer::new(retries(policy, seed, watched))).service(client);

    let slot = ReportSlot::default();
    let mut options = CallOptions::new().report_to(&slot);
    if let Some(timeout) = policy.attempt_timeout {
        options = options.attempt_timeout(timeout);
    }
    if let Some(repeatable) = policy.repeatable {
        options = options.repeatable(repeatable);
    }
    let mut request = Request::get(get.url.clone())
        .body(Empty::<bytes::Bytes>::new())
        .map_err(|error| LabError::new(format!("not a request: {error}")))?;
    request.headers_mut().extend(get.headers.iter().cloned());
    request.extensions_mut().insert(options);

    let start = Instant::now();
    let answer = async { service.ready().await?.call(request).await }.await;
    let head = start.elapsed();
    let answer = match answer {
        Ok(response) => {
            let status = response.status();
            match drained(response.into_body()).await {
                Ok(bytes) => Ok((status, bytes)),
                Err(error) => Err(format!("{status}, but its body broke off: {}", with_causes(&*error))),
            }
        }
        Err(error) => Err(with_causes(&*error)),
    };
    Ok(Ended { answer, report: slot.take(), head, end: start.elapsed() })
}

/// Creates a connector with or without TLS. It reads the system's certificates only if TLS is
/// needed.
fn connector(tls: bool) -> Result<HttpsConnector<HttpConnector>, LabError> {
    let builder = HttpsConnectorBuilder::new();
    let builder = if tls {
        builder
            .with_native_roots()
            .map_err(|error| LabError::new(format!("cannot read the system's certificates: {error}")))?
    } else {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(LabError::new)?
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        builder.with_tls_config(config)
    };
    Ok(builder.https_or_http().enable_all_versions().build())
}

/// A policy for HTTP with a schedule chosen at run time, which can interrupt an attempt.
type Retries = RetryPolicy<Http, SharedSchedule, RetryBudget, BoxedError>;

/// Returns the policy of the layer.
fn retries(policy: &Policy, seed: Option<u64>, watched: bool) -> Retries {
    let http = Http::new().hints(policy.hints(Hints::default()));
    let mut retries = RetryPolicy::with(http)
        .profile(policy.profile.clone())
        .max_server_delay(policy.max_server_delay)
        .boxed_errors();
    if let Some(seed) = seed {
        retries = retries.seed(seed);
    }
    if watched {
        retries = retries.observe(|_, event| anstream::eprintln!("{event}"));
    }
    retries
}

/// Reads a body to its end and returns its length in bytes.
async fn drained<B>(mut body: B) -> Result<u64, BoxError>
where
    B: http_body::Body<Data = bytes::Bytes, Error: Into<BoxError>> + Unpin,
{
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.map_err(Into::into)?.data_ref().map_or(0, |data| data.len() as u64);
    }
    Ok(bytes)
}

/// Formats an error with its causes, each once.
fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}
