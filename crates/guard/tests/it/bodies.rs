//! Tests of a guard that holds a place until the response body ends.

use http_body::Body;
use http_body_util::BodyExt;
use reattempt::guard::GuardLayer;
use reattempt_testing_layers::calls::{Act, ONE, Server, answer, failing};
use reattempt_testing_layers::guard::{Recorder, attempt};
use tower::Layer;

async fn response(
    act: fn() -> Act,
) -> (Recorder, http::Response<impl http_body::Body<Data = bytes::Bytes, Error = std::io::Error>>) {
    let recorder = Recorder::holding();
    let client = GuardLayer::http(recorder.clone()).layer(Server::by(move |_, _| act()));
    let response = client.send(attempt(ONE)).await.unwrap();
    (recorder, response)
}

// G-10
#[tokio::test(start_paused = true)]
async fn place_is_held_until_the_body_is_read() {
    let (recorder, response) = response(|| Act::Answer(answer(200, "some"))).await;
    assert_eq!(recorder.log(), ["admitted", "Served"]);
    let mut body = Box::pin(response.into_body());
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(4), false));
    assert!(body.frame().await.unwrap().unwrap().is_data());
    assert_eq!((body.size_hint().exact(), body.is_end_stream()), (Some(0), true));
    // The frame was the last one, so the reader may stop here.
    assert_eq!(recorder.log(), ["admitted", "Served", "Complete"]);
    assert!(body.frame().await.is_none());
    drop(body);
    assert_eq!(recorder.log().len(), 3);
}

// G-10
#[tokio::test(start_paused = true)]
async fn place_of_an_unread_body_ends_with_it() {
    let (recorder, response) = response(|| Act::Answer(answer(503, "some"))).await;
    assert_eq!(recorder.log(), ["admitted", "Unavailable"]);
    drop(response);
    assert_eq!(recorder.log(), ["admitted", "Unavailable", "Dropped"]);
}

// G-10
#[tokio::test(start_paused = true)]
async fn place_of_a_broken_body_ends_with_it() {
    let (recorder, response) = response(|| {
        let mut broken = answer(200, "");
        *broken.body_mut() = failing();
        Act::Answer(broken)
    })
    .await;
    assert!(response.into_body().collect().await.is_err());
    assert_eq!(recorder.log(), ["admitted", "Served", "Broken"]);
}

// G-10
#[tokio::test(start_paused = true)]
async fn empty_body_ends_the_place_at_the_head() {
    let (recorder, response) = response(|| 204.into()).await;
    assert_eq!(recorder.log(), ["admitted", "Served", "Complete"]);
    drop(response);
    assert_eq!(recorder.log().len(), 3);
}

#[tokio::test(start_paused = true)]
async fn reqwest_response_keeps_its_url() {
    use std::convert::Infallible;

    use reqwest::{Method, Request, ResponseBuilderExt};
    use tower::service_fn;

    let recorder = Recorder::holding();
    let client = service_fn(async |request: Request| {
        let builder = http::Response::builder().status(200).header("x-kept", "1");
        let response = builder.url(request.url().clone()).body("some").unwrap();
        Ok::<_, Infallible>(reqwest::Response::from(response))
    });
    let client = GuardLayer::http(recorder.clone()).layer(client);
    let request = Request::new(Method::GET, "http://one.example/path?query".parse().unwrap());
    let response = client.send(request).await.unwrap();
    assert_eq!(response.url().as_str(), "http://one.example/path?query");
    assert_eq!(response.headers()["x-kept"], "1");
    assert_eq!(recorder.log(), ["admitted", "Served"]);
    assert_eq!(response.text().await.unwrap(), "some");
    assert_eq!(recorder.log(), ["admitted", "Served", "Complete"]);
}
