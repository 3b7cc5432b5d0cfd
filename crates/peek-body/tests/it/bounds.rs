//! The bounds of time and memory.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;
use http_body_util::BodyExt;
use reattempt::PeekBodyLayer;
use tokio::time::{Instant, timeout};
use tower::{Layer, Service, ServiceExt};

use super::support::{Origin, Step, body, data, get, request, response};

const MS: Duration = Duration::from_millis(1);

/// Returns the time for which a response is held.
async fn time_to_head(
    layer: &PeekBodyLayer,
    status: u16,
    kind: &'static str,
    length: Option<u64>,
    steps: Vec<Step>,
) -> Duration {
    let origin = Origin::new(move |_| {
        let mut response = response(status, body(length, steps.clone()));
        response.headers_mut().insert("content-type", kind.parse().unwrap());
        response
    });
    let began = Instant::now();
    let response = timeout(Duration::from_secs(24 * 3600), layer.layer(origin).oneshot(get())).await;
    response.expect("it is handed on").unwrap();
    began.elapsed()
}

// BI-4, B-3
#[tokio::test(start_paused = true)]
async fn streams_wait_no_longer_than_within() {
    let layer = PeekBodyLayer::new();
    let trickle = || [data("."), Step::Wait(40 * MS)].into_iter().cycle().take(4000).collect::<Vec<_>>();
    let rows = [
        (200, "text/plain", vec![Step::Never], 100),
        (200, "text/plain", trickle(), 100),
        (500, "text/plain", trickle(), 1000),
        (200, "text/event-stream", trickle(), 0),
        (200, "application/grpc", vec![Step::Never], 0),
        (200, "application/json", vec![data("{"), Step::Wait(60 * MS), data("}")], 60),
    ];
    for (status, kind, steps, expected) in rows {
        let held = time_to_head(&layer, status, kind, None, steps).await;
        assert!(held >= expected * MS && held <= (expected + 2) * MS, "{status} {kind}: {held:?}");
    }
    let patient = PeekBodyLayer::new().within(600 * 1000 * MS);
    let blanks = [data(" "), Step::Wait(1000 * MS)].into_iter().cycle().take(200).chain([data("<Error/>")]).collect();
    assert_eq!(time_to_head(&patient, 200, "application/xml", None, blanks).await.as_secs(), 100);
}

/// A body of known length is read to its end. If it then does not end, the time limit applies.
// B-4
#[tokio::test(start_paused = true)]
async fn known_length_is_read_to_its_end() {
    let layer = PeekBodyLayer::new();
    let slow = vec![data("four"), Step::Wait(3000 * MS), data("five")];
    assert_eq!(time_to_head(&layer, 200, "text/plain", Some(8), slow).await, 3000 * MS);
    let open = vec![data("four"), Step::Never];
    let held = time_to_head(&layer, 200, "text/plain", Some(4), open).await;
    assert!(held >= 100 * MS && held <= 102 * MS, "{held:?}");
}

/// The server echoes what it reads, and the caller sends more once it has read the echo.
// B-4
#[tokio::test(start_paused = true)]
async fn echo_does_not_lock_itself() {
    let (sender, body_of_caller) = reattempt_testing_layers::calls::fed();
    let origin = Origin::new(|_| response(200, body(Some(8), [data("four"), Step::Never])));
    let request = http::Request::post("http://one.example/").body(body_of_caller).unwrap();
    let began = Instant::now();
    let response = PeekBodyLayer::new().layer(origin).oneshot(request).await.unwrap();
    assert!(began.elapsed() <= 102 * MS);
    let mut body = response.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "four");
    drop(sender);
}

/// Whatever is dropped, and whenever, the memory of its response is free again.
// BI-3, B-12
#[tokio::test(start_paused = true)]
async fn dropped_response_holds_nothing() {
    let layer = PeekBodyLayer::new();
    let steps = |end: Step| vec![data("one"), data("two"), Step::Wait(10 * MS), data("three"), end, data("four")];
    for end in [Step::Never, Step::Break, Step::Wait(500 * MS)] {
        for polls in 1..6 {
            let steps = steps(end.clone());
            let origin = Origin::new(move |_| response(200, body(Some(15), steps.clone())));
            let mut call = pin!(layer.layer(origin).oneshot(get()));
            let mut response = None;
            for _ in 0..polls {
                if let Poll::Ready(ready) = poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
                    response = ready.ok();
                    break;
                }
                tokio::time::advance(7 * MS).await;
            }
            assert!(polls < 2 || layer.held() > 0);
            if let Some(response) = response {
                let _ = response.into_body().frame().await;
            }
            call.set(layer.layer(Origin::new(|_| response_of_nothing())).oneshot(get()));
            assert_eq!(layer.held(), 0, "{end:?} after {polls} polls");
        }
    }
}

fn response_of_nothing() -> http::Response<super::support::Scripted> {
    response(200, body(Some(0), []))
}

/// Beyond the memory of all calls, a response is handed on with the frames that it has.
// B-11
#[tokio::test(start_paused = true)]
async fn memory_of_all_calls_is_bounded() {
    let layer = PeekBodyLayer::new().in_all(64 * 1024).up_to(8 * 1024);
    let part = Bytes::from(vec![0; 4000]);
    let origin = Origin::new(move |_| response(200, body(Some(8000), [Step::Data(part.clone()), Step::Never])));
    let mut service = layer.layer(origin);
    let mut held = Vec::new();
    let mut handed_on = 0;
    for _ in 0..100 {
        let mut call = Box::pin(service.call(get()));
        match poll_fn(|cx| Poll::Ready(call.as_mut().poll(cx))).await {
            Poll::Ready(response) => {
                let mut body = response.unwrap().into_body();
                assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), 4000);
                handed_on += 1;
            }
            Poll::Pending => held.push(call),
        }
        assert!(layer.held() <= 64 * 1024);
    }
    assert!(handed_on > 80 && held.len() > 5, "{handed_on} {}", held.len());
    drop(held);
    assert_eq!(layer.held(), 0);
}

/// Reading what was read ahead releases the memory, before the rest has come.
#[tokio::test(start_paused = true)]
async fn read_prefix_is_released() {
    let layer = PeekBodyLayer::new();
    let origin = Origin::new(|_| response(200, body(None, [data("one"), data("two"), Step::Never])));
    let mut body = layer.layer(origin).oneshot(get()).await.unwrap().into_body();
    assert!(layer.held() > 0);
    for _ in 0..2 {
        assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap().len(), 3);
    }
    assert_eq!((layer.held(), body.size_hint().lower()), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn zero_bytes_read_nothing() {
    let layer = PeekBodyLayer::new().up_to(0);
    for length in [None, Some(4)] {
        assert_eq!(time_to_head(&layer, 200, "text/plain", length, vec![Step::Never]).await, Duration::ZERO);
    }
}

/// Settings that are chosen for a request replace those of the layer, and share its memory.
// B-15
#[tokio::test(start_paused = true)]
async fn chosen_settings_share_the_memory() {
    let base = PeekBodyLayer::new().within(20 * MS);
    let (slow, none) = (base.clone().within(700 * MS), base.clone().up_to(0));
    let layer = base.clone().choose(move |request| match request.path() {
        "/slow" => Some(slow.clone()),
        "/none" => Some(none.clone()),
        _ => None,
    });
    for (path, expected) in [("/slow", 700 * MS), ("/none", Duration::ZERO), ("/", 20 * MS)] {
        let origin = Origin::new(|_| response(200, body(None, [data("some"), Step::Never])));
        let began = Instant::now();
        let held = layer.layer(origin).oneshot(request("GET", &format!("http://one.example{path}"))).await.unwrap();
        assert_eq!(began.elapsed(), expected, "{path}");
        assert_eq!((base.held() > 0, layer.held()), (path != "/none", base.held()), "{path}");
        drop(held);
        assert_eq!(base.held(), 0);
    }
}
