//! gRPC's rules on the wire, frame by frame, with a server that does things a tonic server never
//! would.

mod channel;
mod committing;
mod configured;
mod deadlines;
mod ends;
mod hostile;
mod numbering;
mod pushing_back;
mod re_picks;
mod server;
mod tap;
mod transparent;
mod watching;

use crate::support::echo;

use std::time::Duration;

use bytes::Bytes;
use h2::Reason;
use http::{HeaderMap, HeaderName, HeaderValue, Response};
use prost::Message;
use reattempt::budget::Budget;
use reattempt::grpc::Grpc;
use reattempt::report::ReportSlot;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Report, Retry, RetryLayer, RetryPolicy, StopReason};
use tonic::transport::Channel;
use tonic::{Code, Request, Status};
use tower::ServiceBuilder;

use echo::Text;
use echo::echo_client::EchoClient;
use server::{Server, Step, echo as succeeds};

type Client = EchoClient<Retry<Channel, RetryPolicy<Grpc, Constant>>>;

/// Returns the default policy without delays, whose calls are not declared repeatable.
fn unmarked() -> RetryPolicy<Grpc, Constant> {
    RetryPolicy::grpc().backoff(Constant::immediate())
}

/// Returns a policy without delays for calls that may be repeated.
fn policy() -> RetryPolicy<Grpc, Constant> {
    unmarked().repeatable(true)
}

/// Returns a client of that server whose calls may be repeated, and the slot of its reports.
fn client(server: &Server) -> (Client, ReportSlot) {
    let slot = ReportSlot::default();
    let options = CallOptions::new().report_to(&slot).repeatable(true);
    let retry = ServiceBuilder::new().layer(RetryLayer::new(policy())).service(server.channel());
    (EchoClient::new(retry.with_options(options)), slot)
}

/// Returns a client with this policy, whose calls have no options.
fn client_of<B: Budget + Clone>(
    server: &Server,
    policy: RetryPolicy<Grpc, Constant, B>,
) -> EchoClient<Retry<Channel, RetryPolicy<Grpc, Constant, B>>> {
    EchoClient::new(ServiceBuilder::new().layer(RetryLayer::new(policy)).service(server.channel()))
}

/// Calls a server that follows these scripts and then echoes. Returns the server, the outcome, and
/// the stop reason.
async fn call(scripts: impl IntoIterator<Item = Vec<Step>>) -> (Server, Result<String, Status>, StopReason) {
    let server = Server::start(scripts).await;
    let (mut client, slot) = client(&server);
    let answer = client.say(Text::new("hello")).await;
    let stop = slot.take().map_or(StopReason::Succeeded, |report: Report| report.stop_reason());
    (server, answer.map(|answer| answer.into_inner().text), stop)
}

/// Header fields.
fn fields(fields: &[(&'static str, &[u8])]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &[u8])| {
        (HeaderName::from_static(name), HeaderValue::from_bytes(value).unwrap())
    };
    fields.iter().map(field).collect()
}

/// The head of a gRPC response, with these fields besides.
fn head(own: &[(&'static str, &[u8])]) -> Response<()> {
    head_of(200, own)
}

fn head_of(status: u16, own: &[(&'static str, &[u8])]) -> Response<()> {
    let mut head = Response::new(());
    *head.status_mut() = status.try_into().unwrap();
    head.headers_mut().insert("content-type", HeaderValue::from_static("application/grpc"));
    head.headers_mut().extend(fields(own));
    head
}

/// The frame of a message.
fn message(text: &str) -> Bytes {
    let message = Text::new(text).encode_to_vec();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[0], &length[..], &message].concat().into()
}

/// UNAVAILABLE in one HEADERS frame, as a server refuses a call.
fn refused() -> Vec<Step> {
    vec![Step::Read, Step::Only(head(&[("grpc-status", b"14")]))]
}
