//! A tonic channel in a retry layer, below a generated client.
//!
//! `cargo run --example tonic`

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reattempt::report::ReportSlot;
use reattempt::{CallOptions, Report, RetryLayer, RetryPolicy, StopReason};
use tokio::net::TcpListener;
use tonic::service::InterceptorLayer;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tower::{BoxError, ServiceBuilder};

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let server = flaky_server().await?;

    // No status proves that the server did nothing. So UNAVAILABLE and RESOURCE_EXHAUSTED are retried
    // only for calls that may be repeated. A health check only reads, so here all calls may. If the
    // server asks for a delay, it is obeyed.
    let channel = ServiceBuilder::new()
        .layer(RetryLayer::new(RetryPolicy::grpc().repeatable(true)))
        .service(Endpoint::from_shared(format!("http://{server}"))?.connect_lazy());
    let mut client = HealthClient::new(channel);

    let answer = client.check(HealthCheckRequest::default()).await?;
    let report = answer.extensions().get::<Report>().cloned().ok_or("a report of the retries")?;
    let state = answer.into_inner().status();
    println!("check: {} after {} retries\n{report}\n", state.as_str_name(), report.retries());
    assert_eq!((state, report.retries()), (ServingStatus::Serving, 2));

    // A call that must not run twice has options of its own.
    let slot = ReportSlot::default();
    let mut request = Request::new(HealthCheckRequest::default());
    request.extensions_mut().insert(CallOptions::new().repeatable(false).report_to(&slot));
    let Err(status) = client.check(request).await else { return Err("a deadline that has passed".into()) };
    let report = slot.take().ok_or("a report of the failure")?;
    println!("check, not repeatable: {}\n{report}\n", status.message());
    assert_eq!((status.code(), report.stop_reason()), (Code::DeadlineExceeded, StopReason::NotRepeatable));

    // An error that no retry can fix is returned as it is.
    let mut request = Request::new(HealthCheckRequest { service: "unheard-of".to_owned() });
    request.extensions_mut().insert(CallOptions::new().report_to(&slot));
    let Err(status) = client.check(request).await else { return Err("a service unknown".into()) };
    let report = slot.take().ok_or("a report of the failure")?;
    println!("check, unknown service: {}\n{report}", status.message());
    assert_eq!((status.code(), report.retries()), (Code::NotFound, 0));
    Ok(())
}

/// Starts the health service, which fails three of the first four calls.
async fn flaky_server() -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let arrived = Arc::new(AtomicUsize::new(0));
    let flaky = InterceptorLayer::new(move |call: Request<()>| match arrived.fetch_add(1, Ordering::Relaxed) {
        0 => Err(Status::unavailable("starting")),
        1 => {
            let mut status = Status::resource_exhausted("come back in 20 ms");
            status.metadata_mut().insert("grpc-retry-pushback-ms", 20.into());
            Err(status)
        }
        3 => Err(Status::deadline_exceeded("too slow")),
        _ => Ok(call),
    });
    let (_, health) = tonic_health::server::health_reporter();
    let server = Server::builder().layer(flaky).add_service(health);
    tokio::spawn(server.serve_with_incoming(TcpIncoming::from(listener)));
    Ok(address)
}
