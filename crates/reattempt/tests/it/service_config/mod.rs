//! Tests of calls under a service config, by method, against a scripted service under a paused clock.

mod confirming;
mod hedging;
mod layer;
mod retrying;
mod server;
mod throttling;

use std::time::Duration;

use http::{Request, Response};
use http_body_util::{BodyExt, StreamBody};
use reattempt::grpc::GrpcBody;
use reattempt::grpc::service_config::{Client, ServiceConfigLayer};
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Report};
use reattempt_core::{Budget, StopReason};
use reattempt_grpc::{Code, ServiceConfig};
use tonic::body::Body;
use tower::{Layer, ServiceExt};

use server::{Frames, Server};

const PATH: &str = "/service/method";

fn call() -> Request<Body> {
    call_of(PATH)
}

fn call_of(path: &str) -> Request<Body> {
    Request::post(format!("http://one.example{path}")).body(Body::empty()).unwrap()
}

/// Returns a document with these method configs.
fn document(entries: &[&str]) -> String {
    format!(r#"{{"methodConfig": [{}]}}"#, entries.join(", "))
}

fn retries(attempts: u32, backoff: &str, codes: &str) -> String {
    format!(
        r#""retryPolicy": {{
            "maxAttempts": {attempts}, "initialBackoff": "{backoff}", "maxBackoff": "10s",
            "backoffMultiplier": 2, "retryableStatusCodes": {codes}
        }}"#
    )
}

/// Returns a config that retries all methods this way.
fn retried(attempts: u32, backoff: &str, codes: &str) -> String {
    document(&[&format!(r#"{{"name": [{{}}], {}}}"#, retries(attempts, backoff, codes))])
}

fn hedged(attempts: u32, delay: &str, codes: &str) -> String {
    document(&[&format!(
        r#"{{"name": [{{}}], "hedgingPolicy": {{
            "maxAttempts": {attempts}, "hedgingDelay": "{delay}", "nonFatalStatusCodes": {codes}
        }}}}"#
    )])
}

fn throttled(config: &str, max_tokens: f64, ratio: f64) -> String {
    let config = config.strip_suffix('}').unwrap();
    let separator = if config.ends_with('{') { "" } else { ", " };
    format!(r#"{config}{separator}"retryThrottling": {{"maxTokens": {max_tokens}, "tokenRatio": {ratio}}}}}"#)
}

fn parse(text: &str) -> ServiceConfig {
    ServiceConfig::parse(text).unwrap_or_else(|errors| panic!("{errors}\n{text}"))
}

fn client(text: &str, server: &Server) -> Client<Server> {
    ServiceConfigLayer::new(parse(text)).layer(server.clone())
}

/// Reads the response to its end. Returns the code with which a call ends, and why.
async fn end_of<B: Budget + 'static>(
    client: &Client<Server, B>,
    request: Request<Body>,
) -> (Result<Code, std::io::Error>, StopReason) {
    let slot = ReportSlot::default();
    let client = client.with_options(CallOptions::new().report_to(&slot));
    // Long past every limit that is tested here.
    let within = Duration::from_secs(3600);
    let code = match tokio::time::timeout(within, client.oneshot(request)).await.unwrap() {
        Err(error) => Err(error),
        Ok(answer) => Ok(code_of(answer).await),
    };
    let stop = slot.take().map_or(StopReason::Succeeded, |report: Report| report.stop_reason());
    (code, stop)
}

async fn code_of(answer: Response<GrpcBody<StreamBody<Frames>>>) -> Code {
    let (head, body) = answer.into_parts();
    let trailers = body.collect().await.unwrap().trailers().cloned();
    let status = head.headers.get("grpc-status").cloned();
    let status = status.or_else(|| trailers?.get("grpc-status").cloned()).unwrap();
    Code::from_bytes(status.as_bytes())
}

async fn ends(client: &Client<Server>, code: Code, stop: StopReason) {
    let (ended, why) = end_of(client, call()).await;
    assert_eq!((ended.unwrap(), why), (code, stop));
}
