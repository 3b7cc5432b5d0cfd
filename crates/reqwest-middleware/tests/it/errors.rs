//! Tests of a call's error.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::time::Duration;

use reattempt::report::ReportSlot;
use reattempt::{CallOptions, StopReason, TimedOut};
use reattempt_reqwest_middleware::{CallError, ChainError, ReattemptMiddleware};

use crate::support::{Answer, Server, URL, client, policy};

fn unreachable() -> Server {
    Server::new((0..9).map(|_| Answer::Broken(ErrorKind::ConnectionRefused)))
}

#[tokio::test(start_paused = true)]
async fn error_has_the_report_and_its_source() {
    let error = client(policy(), &unreachable()).get(URL).send().await.unwrap_err();
    let call = CallError::of(&error).unwrap();
    let report = call.report().unwrap();
    assert_eq!((report.retries(), report.stop_reason()), (2, StopReason::AttemptsExhausted));
    let source = call.source().unwrap().downcast_ref::<io::Error>().unwrap();
    assert_eq!(source.kind(), ErrorKind::ConnectionRefused);
    assert!(call.reqwest().is_none());
}

#[tokio::test(start_paused = true)]
async fn error_texts() {
    let error = client(policy(), &unreachable()).get(URL).send().await.unwrap_err();
    assert_eq!(error.to_string(), "the call failed after 2 retries: all allowed attempts have been made");
    assert_eq!(format!("{:?}", CallError::of(&error).unwrap()), "CallError { source: Kind(ConnectionRefused), .. }");

    let server = Server::new([Answer::Broken(ErrorKind::PermissionDenied)]);
    let error = client(policy(), &server).get(URL).send().await.unwrap_err();
    assert_eq!(error.to_string(), "the call failed after 0 retries: the failure is permanent");

    let (slot, server) = (ReportSlot::default(), unreachable());
    let request = client(policy(), &server).get(URL);
    let options = CallOptions::new().report_to(&slot);
    let error = request.with_extension(options).send().await.unwrap_err();
    assert_eq!(error.to_string(), "the call failed");
    assert_eq!(slot.take().unwrap().retries(), 2);
}

/// The debug output of errors has no credentials from the URL.
#[tokio::test(start_paused = true)]
async fn debug_output_has_no_credentials() {
    let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new());
    let client = client.with(ReattemptMiddleware::new(policy())).build();
    let error = client.get("unknown://user:secret@a.example/?key=secret").send().await.unwrap_err();
    let call = CallError::of(&error).unwrap();
    assert!(call.reqwest().is_some_and(|error| error.url().is_some()), "the source has the URL");
    let bare = reqwest::Client::new().get("unknown://user:secret@a.example/?key=secret");
    let chain = ChainError::from(reqwest_middleware::Error::Reqwest(bare.send().await.unwrap_err()));
    for text in [format!("{call:?}"), format!("{call:#?}"), format!("a.example {chain:?}")] {
        assert!(text.contains("a.example") && !text.contains("secret"), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn error_of_a_limit_is_the_source() {
    let server = Server::new([Answer::Slow(Duration::from_secs(60))]);
    let policy = policy().max_attempts(1).attempt_timeout(Duration::from_secs(1));
    let error = client(policy, &server).get(URL).send().await.unwrap_err();
    let call = CallError::of(&error).unwrap();
    assert!(call.source().unwrap().is::<TimedOut>(), "{call:?}");
}
