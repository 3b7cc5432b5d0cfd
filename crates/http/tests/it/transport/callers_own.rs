//! Tests of errors that this side caused, which are no sign of the server's health, and of errors that it did not
//! cause.

use reattempt_replay::ReplayError;

use super::server::{read_http2_headers, read_on, refused, reset, serve};
use super::*;

#[test]
fn stopped_upload_is_callers_own() {
    for error in [ReplayError::Superseded, ReplayError::NotKept] {
        let text = format!("{error:?}");
        assert_eq!(fault_of_error(&error), Some(Fault::Caller), "{text}");
        assert_eq!(fault_of_error(&std::io::Error::other(error)), Some(Fault::Caller), "{text} in another error");
    }
}

#[tokio::test]
async fn failed_body_is_callers_own() {
    let http1 = serve(async |mut connection| read_on(&mut connection).await).await;
    let request = post_that_breaks_off(&format!("http://{http1}/"));
    let error = http1_client().request(request).await.unwrap_err();
    assert_eq!(fault_of_error(&error), Some(Fault::Caller), "{error:?}");
    let http2 = serve(async |mut connection| {
        read_http2_headers(&mut connection).await;
        read_on(&mut connection).await;
    });
    let request = post_that_breaks_off(&format!("http://{}/", http2.await));
    let error = http2_client().request(request).await.unwrap_err();
    assert_eq!(fault_of_error(&error), Some(Fault::Caller), "{error:?}");
}

#[tokio::test]
async fn servers_fault_is_not_callers_own() {
    let refused = refused().await;
    let resets = serve(async |connection| reset(connection)).await;
    for (client, server) in
        [(http1_client(), refused), (http2_client(), refused), (http1_client(), resets), (http2_client(), resets)]
    {
        let error = client.request(get(&format!("http://{server}/"))).await.unwrap_err();
        assert_ne!(fault_of_error(&error), Some(Fault::Caller), "{error:?}");
    }
    assert_ne!(fault_of_error(&std::fmt::Error), Some(Fault::Caller));
}

#[cfg(feature = "reqwest")]
#[tokio::test]
async fn unusable_reqwest_is_callers_own() {
    let client = reqwest::Client::new();
    let unusable = client.get("/no-host").send().await.unwrap_err();
    assert_eq!(fault_of_error(&unusable), Some(Fault::Caller), "{unusable:?}");
    let refused = client.get(format!("http://{}/", refused().await)).send().await.unwrap_err();
    assert_ne!(fault_of_error(&refused), Some(Fault::Caller), "{refused:?}");
}
