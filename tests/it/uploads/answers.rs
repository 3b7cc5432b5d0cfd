//! Answers before the end of an upload, `Expect: 100-continue`, and redirects that keep the body.

use http::header::{EXPECT, LOCATION};
use http::{HeaderValue, StatusCode};
use reattempt::body::UploadBody;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, ReplayBody, RetryLayer, StopReason, Verdict};
use reattempt_faults::{End, Read};
use tower::{Layer, ServiceBuilder, ServiceExt};
use tower_http::follow_redirect::FollowRedirectLayer;
use tower_http::follow_redirect::policy::{Limited, PolicyExt, clone_body_fn};

use super::{TestFile, plain, request};
use crate::support::{Server, quick, status};

const LENGTH: usize = 1_000_000;

#[tokio::test]
async fn early_413_is_final() {
    let file = TestFile::new(LENGTH);
    for http2 in [false, true] {
        let early = status(413).read(Read::Body(100_000));
        let server = if http2 { Server::http2([early]).await } else { Server::http1([early]).await };
        let client = RetryLayer::new(quick()).layer(plain(http2));
        let response = client.oneshot(request("PUT", &server.url("/"), file.upload().await)).await.unwrap();
        assert_eq!((response.status().as_u16(), server.seen().len()), (413, 1), "{http2}");
    }
}

/// Over HTTP/2, the first upload is still running when the answer arrives.
#[tokio::test]
async fn early_503_is_retried_whole() {
    let file = TestFile::new(LENGTH);
    for (http2, end) in [(false, End::Open), (false, End::Close), (true, End::Open), (true, End::ResetStream(0))] {
        let early = status(503).read(Read::Body(100_000)).end_with(end);
        let server = if http2 { Server::http2([early]).await } else { Server::http1([early]).await };
        let client = RetryLayer::new(quick()).layer(plain(http2));
        let response = client.oneshot(request("PUT", &server.url("/"), file.upload().await)).await.unwrap();
        assert_eq!(response.status(), 200, "{http2} {end:?}");
        file.assert_arrived(&server.seen(), 2);
    }
}

#[tokio::test]
async fn expectation_is_sent_each_time() {
    let file = TestFile::new(LENGTH);
    let again = |code| status(code).informational(StatusCode::CONTINUE);
    let server = Server::http1([again(503), again(200)]).await;
    let mut put = request("PUT", &server.url("/"), file.upload().await);
    put.headers_mut().insert(EXPECT, HeaderValue::from_static("100-continue"));
    let response = RetryLayer::new(quick()).layer(plain(false)).oneshot(put).await.unwrap();
    assert_eq!(response.status(), 200);
    file.assert_arrived(&server.seen(), 2);
    assert!(server.seen().iter().all(|arrival| arrival.headers[EXPECT] == "100-continue"));

    let refusing = Server::http1([status(417).read(Read::Head)]).await;
    let mut put = request("PUT", &refusing.url("/"), file.upload().await);
    put.headers_mut().insert(EXPECT, HeaderValue::from_static("100-continue"));
    let response = RetryLayer::new(quick()).layer(plain(false)).oneshot(put).await.unwrap();
    assert_eq!((response.status().as_u16(), refusing.seen().len()), (417, 1));
}

/// Each hop is a call of its own outside the retry layer, and a part of the attempt inside it.
#[tokio::test]
async fn redirects_keep_the_body() {
    let file = TestFile::new(LENGTH);
    for code in [307, 308] {
        let moved = || status(code).header(LOCATION, HeaderValue::from_static("/moved"));
        let outside = clone_body_fn(|body: &UploadBody| Some(body.clone()));
        let server = Server::http1([moved(), status(503)]).await;
        let client = ServiceBuilder::new()
            .layer(FollowRedirectLayer::with_policy(Limited::default().and::<_, UploadBody, ()>(outside)))
            .layer(RetryLayer::new(quick()))
            .service(plain(false));
        let response = client.oneshot(request("PUT", &server.url("/"), file.upload().await)).await.unwrap();
        assert_eq!(response.status(), 200);
        file.assert_arrived(&server.seen(), 3);

        let inside = clone_body_fn(ReplayBody::<UploadBody>::try_clone);
        let server = Server::http1([moved(), status(503), moved()]).await;
        let client = ServiceBuilder::new()
            .layer(RetryLayer::new(quick()))
            .layer(FollowRedirectLayer::with_policy(Limited::default().and::<_, ReplayBody<UploadBody>, ()>(inside)))
            .service(plain(false));
        let response = client.oneshot(request("PUT", &server.url("/"), file.upload().await)).await.unwrap();
        assert_eq!(response.status(), 200);
        file.assert_arrived(&server.seen(), 4);
    }
}

/// The call ends with the server's answer, and nothing of the changed file is sent.
// field 30
#[tokio::test]
async fn changed_file_is_not_sent_again() {
    let file = TestFile::new(LENGTH);
    let server = Server::http1([status(503)]).await;
    let slot = ReportSlot::default();
    let mut put = request("PUT", &server.url("/"), file.upload().await);
    put.extensions_mut().insert(CallOptions::new().report_to(&slot));
    let path = file.path.clone();
    let policy = quick().classify(move |outcome: reattempt::classify::Outcome<'_>| {
        if outcome.status() == Some(StatusCode::SERVICE_UNAVAILABLE) {
            std::fs::write(&path, "shorter").unwrap();
        }
        None::<Verdict>
    });
    let response = RetryLayer::new(policy).layer(plain(false)).oneshot(put).await.unwrap();
    assert_eq!((response.status().as_u16(), server.seen().len()), (503, 1));
    let report = slot.take().unwrap();
    assert_eq!(report.stop_reason(), StopReason::BodyNotOpened);
    let error = report.upload_error().unwrap().to_string();
    assert!(error.contains("changed from 1000000 bytes") && error.contains(" to 7 bytes"), "{error}");
}
