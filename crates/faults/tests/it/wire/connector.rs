//! Tests of hyper-util's client with a connector that has faults.

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
        Faults::new([WireFault::Refuse, WireFault::read(20, Break::Reset), WireFault::TimeOut, WireFault::NoFault]);
    let address = server().await;
    let call = || async {
        let connector = faults.connector(HttpConnector::new());
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let request = Request::get(format!("http://{address}/")).body(String::new()).unwrap();
        match client.request(request).await {
            Ok(response) => response.status().to_string(),
            Err(error) => format!("connect: {}", error.is_connect()),
        }
    };
    assert_eq!(timeout(HANGS, call()).await.unwrap(), "connect: true");
    assert_eq!(timeout(HANGS, call()).await.unwrap(), "connect: false");
    // The third connection is never established, while the fourth serves a call.
    tokio::select! {
        biased;
        ended = call() => panic!("the connection timed out by itself: {ended}"),
        served = timeout(HANGS, call()) => assert_eq!(served.unwrap(), "200 OK"),
    }
    timeout(HANGS, faults.ledger().all_closed()).await.unwrap();
}
