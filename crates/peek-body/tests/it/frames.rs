//! Frames, trailers, lengths and errors are those of the bare client.

use std::future::poll_fn;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http_body::Body;
use reattempt::{PeekBodyLayer, Report};
use tower::{Layer, ServiceExt};

use super::support::{Origin, Step, body, data, get, response, retries};

/// Reads a body as one line per observation.
async fn observe<B: Body<Data = Bytes, Error: std::fmt::Display> + Unpin>(mut body: B) -> Vec<String> {
    let mut seen = Vec::new();
    loop {
        let hint = body.size_hint();
        seen.push(format!("{}..{:?} end {}", hint.lower(), hint.upper(), body.is_end_stream()));
        match poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            Some(Ok(frame)) => match frame.into_data() {
                Ok(data) => seen.push(format!("{} bytes from {:?}", data.len(), data.first())),
                Err(frame) => seen.push(format!("{:?}", frame.into_trailers().ok())),
            },
            Some(Err(error)) => {
                seen.push(error.to_string());
                return seen;
            }
            None => {
                seen.push("end".to_owned());
                assert!(poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await.is_none());
                return seen;
            }
        }
    }
}

fn part(length: usize) -> Step {
    Step::Data(vec![u8::try_from(length % 256).unwrap(); length].into())
}

fn trailers() -> Step {
    Step::Trailers(HeaderMap::from_iter([(http::header::ETAG, "\"1\"".parse().unwrap())]))
}

// BI-2, B-1, B-8
#[tokio::test(start_paused = true)]
async fn body_is_that_of_bare_client() {
    let wait = |ms| Step::Wait(Duration::from_millis(ms));
    let known = [0, 1, 200, 2000, 64 * 1024, 64 * 1024 + 1, 2_000_000];
    let mut bodies: Vec<(Option<u64>, Vec<Step>)> = known
        .iter()
        .map(|&length| (Some(length as u64), if length == 0 { vec![] } else { vec![part(length)] }))
        .collect();
    bodies.extend([
        (None, vec![part(3), part(5), trailers()]),
        (None, vec![]),
        (None, vec![trailers()]),
        (None, vec![part(0), part(4)]),
        (None, vec![part(60_000), part(60_000), part(7), trailers()]),
        (None, vec![part(3), wait(150), part(5), trailers()]),
        (None, vec![wait(150), part(5)]),
        (Some(8), vec![part(3), wait(5000), part(5)]),
        (Some(8), vec![part(3), part(5), trailers()]),
        (Some(8), vec![part(3), part(5), wait(5000), trailers()]),
        (None, std::iter::repeat_n(part(1), 2000).collect()),
        (None, vec![part(100_000), Step::Break]),
    ]);
    for (length, steps) in bodies {
        let bare = observe(body(length, steps.clone())).await;
        let origin = Origin::new(move |_| response(200, body(length, steps.clone())));
        let read = PeekBodyLayer::new().layer(origin).oneshot(get()).await.unwrap();
        assert!(read.extensions().is_empty());
        let peeked = observe(read.into_body()).await;
        // What is read ahead changes no frame, but the end is known earlier or later.
        let frames = |seen: &[String]| seen.iter().filter(|line| !line.contains(" end ")).cloned().collect::<Vec<_>>();
        assert_eq!(frames(&bare), frames(&peeked), "{length:?}");
        if length.is_some() {
            assert_eq!(bare, peeked, "{length:?}");
        }
    }
}

/// After three breaks, the caller gets the last response, its bytes and the client's own error.
// B-5, B-8
#[tokio::test(start_paused = true)]
async fn last_break_is_the_callers() {
    let origin = Origin::new(|_| response(200, body(Some(9), [data("four"), Step::Break])));
    let client = retries().layer(PeekBodyLayer::new().layer(origin.clone()));
    let answer = client.oneshot(get()).await.unwrap();
    assert_eq!(origin.count(), 3);
    let report = Report::of(&answer).unwrap().to_string();
    assert!(report.contains(": network: connection reset"), "{report}");
    let seen = observe(answer.into_body()).await;
    assert_eq!(seen[1..], ["4 bytes from Some(102)", "5..Some(5) end false", "connection reset"]);
    assert_eq!(seen[0], "9..Some(9) end false");
}

/// A head that is a failure is judged by itself: a 404 stays final, a 503 keeps its code and its hint.
// B-5
#[tokio::test(start_paused = true)]
async fn break_behind_failure_is_judged_by_head() {
    for (status, requests) in [(404, 1), (503, 3)] {
        let origin = Origin::new(move |_| {
            let mut response = response(status, body(Some(9), [data("four"), Step::Break]));
            response.headers_mut().insert("retry-after", "7".parse().unwrap());
            response
        });
        let client = retries().layer(PeekBodyLayer::new().layer(origin.clone()));
        let answer = client.oneshot(get()).await.unwrap();
        assert_eq!((answer.status().as_u16(), origin.count()), (status, requests));
        if let Some(report) = Report::of(&answer) {
            assert!(report.attempts()[0].delay.unwrap() >= Duration::from_secs(7), "{report}");
            assert!(report.to_string().contains("(503)"), "{report}");
        }
    }
}
