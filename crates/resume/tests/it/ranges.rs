//! Parts of a body: the caller's own range, a download that stopped earlier, and answers with more or less than the
//! rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use reattempt::RetryBudget;
use reattempt::resume::{Checkpoint, Continuation, Mismatch};
use tokio::time::Instant;
use tower::{Layer, ServiceBuilder, ServiceExt, service_fn};
use tower_http::follow_redirect::FollowRedirectLayer;

use super::support::{
    Answer, BoxError, LENGTH, Piece, Server, assert_broken, client, content, download, get, layer, mismatch, read,
};

fn ranged(range: &'static str) -> Request<String> {
    let mut request = get();
    request.headers_mut().insert("range", HeaderValue::from_static(range));
    request
}

/// Returns a version's bytes from `start` to before `end`, of a part that promises those up to before `promised`.
fn part(start: usize, end: usize, promised: usize) -> Answer {
    let range = format!("bytes {start}-{}/{LENGTH}", promised - 1);
    let last = (end < promised).then_some(Piece::Error(std::io::ErrorKind::ConnectionReset));
    Answer::rest(1, start, end).ending(last).with("content-range", range).with("content-length", promised - start)
}

/// The caller's own range is continued within it.
// field 28
#[tokio::test(start_paused = true)]
async fn own_range_is_continued() {
    for range in ["bytes=100-899", "bytes=100-", "bytes=-900"] {
        let server = Server::new([part(100, 400, 900), part(400, 700, 900), part(700, 900, 900)]);
        let response = client(&server).oneshot(ranged(range)).await.unwrap();
        assert_eq!(response.headers()["content-range"], "bytes 100-899/1000");
        let read = read(response.into_body()).await;
        assert_eq!((read.data, read.error.is_none()), (content(1)[100..900].to_vec(), true));
        assert_eq!(server.ranges(), [range, "bytes=400-899", "bytes=700-899"]);
    }
}

/// A range of several parts passes through.
#[tokio::test(start_paused = true)]
async fn several_ranges_are_not_continued() {
    let server = Server::new([part(100, 400, 900), part(400, 900, 900)]);
    let body = client(&server).oneshot(ranged("bytes=100-899,950-999")).await.unwrap().into_body();
    assert_eq!(read(body).await.data, content(1)[100..400]);
    assert_eq!(server.seen().len(), 1);
}

/// A download goes on from a stored offset, and is resumed when it breaks again.
#[tokio::test(start_paused = true)]
async fn download_goes_on_from_stored_offset() {
    let send = async |answers: Vec<Answer>| {
        let server = Server::new(answers);
        let checkpoint = Checkpoint::new(300, HeaderValue::from_static("\"1\"")).unwrap();
        let mut request = get();
        checkpoint.write_to(request.headers_mut());
        let response = client(&server).oneshot(request).await.unwrap();
        let found = checkpoint.check(response.status(), response.headers());
        let read = read(response.into_body()).await;
        assert!(read.error.is_none());
        (found, read.data, server.ranges())
    };
    let (found, data, ranges) =
        send(vec![Answer::rest(1, 300, 500).with("content-length", 700), part(500, LENGTH, LENGTH)]).await;
    assert!(matches!(found, Ok(Continuation::Rest(_))));
    assert_eq!((data, ranges), (content(1)[300..].to_vec(), vec!["bytes=300-".to_owned(), "bytes=500-999".to_owned()]));

    // The content has changed: the new body comes from its start, and is resumed with its own validator.
    let (found, data, _) = send(vec![Answer::whole(2, 500), Answer::rest(2, 500, LENGTH)]).await;
    assert_eq!(found, Ok(Continuation::Whole { changed: true }));
    assert_eq!(data, content(2));

    let (found, data, _) = send(vec![Answer::status(416).with("content-range", "bytes */300")]).await;
    assert_eq!((found, data), (Ok(Continuation::Complete), vec![]));
    let (found, ..) = send(vec![Answer::status(416).with("content-range", "bytes */299")]).await;
    assert_eq!(found, Err(Mismatch::Unsatisfied { expected: 300, total: 299 }));
}

/// A part that begins earlier is read from the first missing byte on.
#[tokio::test(start_paused = true)]
async fn earlier_part_is_skipped() {
    for start in [0, 1, 199, 200, 399] {
        let server = Server::new([Answer::whole(1, 400), Answer::rest(1, start, LENGTH)]);
        let read = download(&server).await;
        assert_eq!((read.data, read.error.is_none()), (content(1).to_vec(), true), "{start}");
    }
    // A part that breaks before the first new byte is no progress.
    let rest = || Answer::rest(1, 100, 399);
    let server = Server::new([Answer::whole(1, 400), rest(), rest(), rest(), rest(), rest(), rest()]);
    assert_broken(&download(&server).await, 1, 400);
    assert_eq!(server.seen().len(), 6);
}

/// A server that ignores the range sends everything again, which is skipped once.
#[tokio::test(start_paused = true)]
async fn whole_content_is_skipped_once() {
    let server = Server::new([Answer::whole(1, 400), Answer::whole(1, LENGTH)]);
    let read = download(&server).await;
    assert_eq!((read.data, read.error.is_none()), (content(1).to_vec(), true));

    let server = Server::new([Answer::whole(1, 400), Answer::whole(1, 700), Answer::whole(1, LENGTH)]);
    let read = download(&server).await;
    assert_broken(&read, 1, 700);
    assert_eq!((mismatch(&read), server.seen().len()), (Some(Mismatch::Status(http::StatusCode::OK)), 3));
}

/// No more bytes are skipped than the settings permit.
#[tokio::test(start_paused = true)]
async fn skipping_has_a_limit() {
    for (most, joined) in [(400, true), (399, false), (0, false)] {
        for rest in [Answer::whole(1, LENGTH), Answer::rest(1, 0, LENGTH)] {
            let server = Server::new([Answer::whole(1, 400), rest]);
            let body = layer().max_skip(most).layer(server).oneshot(get()).await.unwrap().into_body();
            let read = read(body).await;
            assert_eq!(read.error.is_none(), joined);
            assert_eq!(mismatch(&read), (!joined).then_some(Mismatch::Skip { skip: 400, most }));
        }
    }
}

/// The beginning of the rest is taken, and what follows it is requested again. Small parts count as breaks, whose delay
/// starts anew with each new byte.
#[tokio::test(start_paused = true)]
async fn beginning_of_rest_is_taken() {
    let parts = (4..10).map(|at| part(at * 100, at * 100 + 100, at * 100 + 100));
    let server = Server::new([Answer::whole(1, 400)].into_iter().chain(parts));
    let read = download(&server).await;
    assert_eq!((read.data, read.error.is_none()), (content(1).to_vec(), true));
    assert_eq!(server.ranges()[1..], (4..10).map(|at| format!("bytes={at}00-999")).collect::<Vec<_>>());
    assert_eq!(server.times(), [0, 100, 200, 300, 400, 500, 600]);

    // A part that promises the beginning and sends none of it is no progress.
    let empty = || part(400, 400, 500);
    let server = Server::new([Answer::whole(1, 400), empty(), empty(), empty(), empty(), empty(), empty()]);
    assert_broken(&download(&server).await, 1, 400);
    assert_eq!(server.seen().len(), 6);
}

/// Large parts follow each other at once, without a token of the budget.
#[tokio::test(start_paused = true)]
async fn large_parts_follow_at_once() {
    const PART: usize = 64 * 1024;
    let began = Instant::now();
    let requests = Arc::new(AtomicUsize::new(0));
    let sent = Arc::clone(&requests);
    let server = service_fn(move |request: Request<String>| {
        sent.fetch_add(1, Ordering::Relaxed);
        let response = Response::builder().header("etag", "\"1\"");
        let range = request.headers().get("range").and_then(|range| range.to_str().ok()?.strip_prefix("bytes="));
        let (response, data) = match range.and_then(|range| range.split_once('-')?.0.parse::<usize>().ok()) {
            None => (response.header("content-length", 10 * PART), Bytes::new()),
            Some(first) => {
                let range = format!("bytes {first}-{}/{}", first + PART - 1, 10 * PART);
                (response.status(206).header("content-range", range), Bytes::from(vec![7; PART]))
            }
        };
        let frames = stream::iter([Ok::<_, BoxError>(Frame::data(data))]);
        std::future::ready(response.body(StreamBody::new(frames)))
    });
    // The budget grants the resume after the break, and no other.
    let layer = layer().budget(RetryBudget::rate(0.0, 1.0));
    let body = layer.layer(server).oneshot(get()).await.unwrap().into_body();
    assert!(body.collect().await.unwrap().to_bytes() == vec![7; 10 * PART]);
    assert_eq!((requests.load(Ordering::Relaxed), began.elapsed().as_millis()), (11, 100));
}

/// A redirect to another signed URL each time: each resume starts at the caller's address, and the client's rules keep
/// the credentials there.
// field 29
#[tokio::test(start_paused = true)]
async fn credentials_stay_at_callers_address() {
    let found = |place: &str| Answer::status(302).with("location", place);
    let (first, second) = ("http://cdn.example/file?signature=1", "http://other.example/blob?signature=2");
    let script = [found(first), Answer::whole(1, 400), found(second), Answer::rest(1, 400, LENGTH)];
    let server = Server::new(script);
    let client = ServiceBuilder::new().layer(layer()).layer(FollowRedirectLayer::new()).service(server.clone());
    let mut request = get();
    request.headers_mut().insert("authorization", HeaderValue::from_static("secret"));
    let read = read(client.oneshot(request).await.unwrap().into_body()).await;
    assert_eq!((read.data, read.error.is_none()), (content(1).to_vec(), true));
    let asked = "http://one.example/file?a=b";
    let seen = server.seen();
    let credentials =
        seen.iter().map(|request| (request.uri().to_string(), request.headers().contains_key("authorization")));
    let expected = [(asked, true), (first, false), (asked, true), (second, false)];
    assert!(credentials.eq(expected.map(|(uri, has)| (uri.to_owned(), has))));
    assert_eq!(server.ranges()[2..], ["bytes=400-999", "bytes=400-999"]);
}

/// With `tags_only`, a date is no validator.
#[tokio::test(start_paused = true)]
async fn date_is_refused_by_a_setting() {
    let dated = |answer: Answer| {
        let answer = answer.with("etag", "").with("last-modified", "Thu, 26 Nov 2026 12:00:00 GMT");
        answer.with("date", "Thu, 26 Nov 2026 12:01:00 GMT")
    };
    let rest = || dated(Answer::rest(1, 400, LENGTH)).with("last-modified", "");
    let server = Server::new([dated(Answer::whole(1, 400)), rest()]);
    assert_eq!(download(&server).await.data, content(1));

    let server = Server::new([dated(Answer::whole(1, 400)), rest()]);
    let body = layer().tags_only().layer(server.clone()).oneshot(get()).await.unwrap().into_body();
    assert_broken(&read(body).await, 1, 400);
    assert_eq!(server.seen().len(), 1);
    let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH)]);
    let body = layer().tags_only().layer(server).oneshot(get()).await.unwrap().into_body();
    assert_eq!(read(body).await.data, content(1));
}
