//! Tests of hyper-util's client with a connector that has faults.

use std::time::Duration;

use http::Request;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt_faults::{Break, Faults, WireFault};
use tokio::time::timeout;

use super::clients::{HANGS, server};

#[tokio::test]
async fn hyper_meets_faults_in_its_connector() {
    let faults =
        Faults::new([WireFault::Refuse, WireFault::read(20, Break::Reset), WireFault::TimeOut, WireFault::Pass]);
    let address = server().await;
    let mut seen = Vec::new();
    for _ in 0..4 {
        let connector = faults.connector(HttpConnector::new());
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let request = Request::get(format!("http://{address}/")).body(String::new()).unwrap();
        // A connection that is never established ends only at the bound.
        let bound = if seen.len() == 2 { Duration::from_millis(20) } else { HANGS };
        seen.push(match timeout(bound, client.request(request)).await {
            Ok(Ok(response)) => response.status().to_string(),
            Ok(Err(error)) => format!("connect: {}", error.is_connect()),
            Err(_) => "timed out".to_owned(),
        });
    }
    assert_eq!(seen, ["connect: true", "connect: false", "timed out", "200 OK"]);
    timeout(HANGS, faults.ledger().all_closed()).await.unwrap();
}
