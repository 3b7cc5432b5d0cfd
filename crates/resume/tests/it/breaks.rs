//! Tests of breaks: which are resumed, and what the caller reads.

use std::io::ErrorKind;

use http::HeaderMap;
use reattempt::report::ReportSlot;
use reattempt::resume::{BrokenOff, Mismatch, NotContinued};
use reattempt::{CallOptions, StopReason};
use tokio::time::Instant;
use tower::ServiceExt;

use super::support::{Answer, LENGTH, Piece, Server, assert_broken, client, content, download, get, mismatch, read};

/// A body that breaks at any byte is read without a gap, from one request for the rest.
#[tokio::test(start_paused = true)]
async fn body_is_continued_at_every_byte() {
    for cut in 0..LENGTH {
        let server = Server::new([Answer::whole(1, cut), Answer::rest(1, cut, LENGTH)]);
        let read = download(&server).await;
        assert!(read.error.is_none(), "{cut}");
        assert_eq!(read.data, content(1), "{cut}");
        assert_eq!(server.ranges(), [String::new(), format!("bytes={cut}-999")]);
        assert_eq!(server.open_bodies(), 0);
    }
}

/// Each new byte starts the count of resumes anew.
#[tokio::test(start_paused = true)]
async fn break_after_every_byte_is_continued() {
    let rests = (1..LENGTH).map(|start| Answer::rest(1, start, start + 1));
    let server = Server::new([Answer::whole(1, 1)].into_iter().chain(rests));
    let read = download(&server).await;
    assert_eq!((read.data, server.seen().len()), (content(1).to_vec(), LENGTH));
}

#[tokio::test(start_paused = true)]
async fn request_for_rest_repeats_callers_own() {
    let server = Server::new([Answer::whole(1, 300), Answer::rest(1, 300, LENGTH)]);
    let mut request = get();
    request.headers_mut().insert("authorization", "secret".parse().unwrap());
    request.headers_mut().insert("accept-encoding", "br".parse().unwrap());
    read(client(&server).oneshot(request).await.unwrap().into_body()).await;
    let [first, rest] = server.seen().try_into().unwrap();
    assert_eq!((first.method(), first.uri()), (rest.method(), rest.uri()));
    assert_eq!(first.headers().len(), 2, "nothing is added to the first request");
    let headers: HeaderMap = [
        ("authorization", "secret"),
        ("accept-encoding", "identity"),
        ("range", "bytes=300-999"),
        ("if-range", "\"1\""),
    ]
    .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
    .into_iter()
    .collect();
    assert_eq!(rest.headers(), &headers);
}

/// A body that ends early without an error is resumed, and never ends without an error.
#[tokio::test(start_paused = true)]
async fn early_end_without_error_is_a_break() {
    for last in [None, Some(Piece::Trailers(HeaderMap::new()))] {
        let short = Answer::whole(1, 400).ending(last.clone());
        let server = Server::new([short.clone(), Answer::rest(1, 400, 700).ending(last), Answer::rest(1, 700, LENGTH)]);
        assert_eq!(download(&server).await.data, content(1));

        let server = Server::new([short]);
        let read = download(&server).await;
        assert_eq!(mismatch(&read), Some(Mismatch::Status(http::StatusCode::GONE)));
        let error = read.error.unwrap().downcast::<NotContinued>().unwrap().into_break();
        let error = error.downcast_ref::<BrokenOff>().unwrap();
        assert_eq!((error.received(), error.total()), (400, 1000));
        assert_eq!(error.to_string(), "the body broke off after 400 of 1000 bytes");
        assert_eq!(read.data, content(1)[..400]);
    }
}

/// An error of an unknown type is not resumed, as no unknown error is retried.
#[tokio::test(start_paused = true)]
async fn unknown_error_is_not_resumed() {
    let server = Server::new([Answer::whole(1, 400).ending(Piece::Unknown), Answer::rest(1, 400, LENGTH)]);
    let read = download(&server).await;
    assert_eq!((read.data.len(), read.error.unwrap().to_string()), (400, "a checksum differs".to_owned()));
    assert_eq!(server.seen().len(), 1);
}

/// After the last byte, a lost connection has no effect, in the first part and in a later one. Any other error reaches
/// the caller, because it may be that of a checksum.
#[tokio::test(start_paused = true)]
async fn error_after_last_byte_is_judged() {
    let parts = || [vec![Answer::whole(1, LENGTH)], vec![Answer::whole(1, 10), Answer::rest(1, 10, LENGTH)]];
    for (last, comes) in [(Piece::Error(ErrorKind::ConnectionReset), false), (Piece::Unknown, true)] {
        for mut script in parts() {
            let requests = script.len();
            let end = script.pop().unwrap().ending(last.clone());
            script.push(end);
            let server = Server::new(script);
            let slot = ReportSlot::default();
            let mut request = get();
            request.extensions_mut().insert(CallOptions::new().report_to(&slot));
            let read = read(client(&server).oneshot(request).await.unwrap().into_body()).await;
            assert_eq!((read.data, server.seen().len()), (content(1).to_vec(), requests));
            assert_eq!(read.error.map(|error| error.to_string()), comes.then(|| "a checksum differs".to_owned()));
            if requests == 2 {
                let expected = if comes { StopReason::Permanent } else { StopReason::Succeeded };
                assert_eq!(slot.take().unwrap().stop_reason(), expected);
            }
            assert_eq!(server.open_bodies(), 0);
        }
    }
}

/// The first response's trailers describe its whole body; those of a part describe the part.
#[tokio::test(start_paused = true)]
async fn trailers_of_a_part_are_dropped() {
    let trailers = || Piece::Trailers(HeaderMap::from_iter([("digest".parse().unwrap(), "x".parse().unwrap())]));
    let server = Server::new([Answer::whole(1, LENGTH).ending(trailers())]);
    let whole = download(&server).await;
    assert_eq!((whole.data, whole.trailers.unwrap()["digest"].as_bytes()), (content(1).to_vec(), &b"x"[..]));

    let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH).ending(trailers())]);
    let resumed = download(&server).await;
    assert_eq!((resumed.data, resumed.trailers), (content(1).to_vec(), None));
}

/// A first body beyond its `Content-Length` comes through as it is. A part beyond it is not joined.
#[tokio::test(start_paused = true)]
async fn body_beyond_its_length_is_not_joined() {
    let more = Piece::Data("more".into());
    let server = Server::new([Answer::whole(1, LENGTH).ending(more.clone())]);
    let body = client(&server).oneshot(get()).await.unwrap().into_body();
    let all = http_body_util::BodyExt::collect(body).await.unwrap().to_bytes();
    assert_eq!(all, [&content(1)[..], b"more"].concat());

    let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH).ending(more)]);
    let read = download(&server).await;
    assert_broken(&read, 1, LENGTH);
    assert_eq!(mismatch(&read), Some(Mismatch::Length { expected: 600, found: Some(604) }));

    // A part whose range ends earlier than its bytes.
    let short = Answer::rest(1, 400, LENGTH).with("content-range", "bytes 400-998/1000");
    let read = download(&Server::new([Answer::whole(1, 400), short])).await;
    assert_broken(&read, 1, 700);
    assert_eq!(mismatch(&read), Some(Mismatch::Length { expected: 599, found: Some(600) }));

    let long = Piece::Data(content(1).slice(300..));
    let server = Server::new([Answer::whole(1, 400), Answer { pieces: vec![long], ..Answer::rest(1, 400, LENGTH) }]);
    assert_broken(&download(&server).await, 1, 400);
}

/// A server that never ends a complete part delays the end of the body by five seconds.
#[tokio::test(start_paused = true)]
async fn complete_part_is_not_read_for_ever() {
    let began = Instant::now();
    let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH).ending(Piece::Stall)]);
    let read = tokio::time::timeout(std::time::Duration::from_secs(9), download(&server)).await.unwrap();
    assert_eq!((read.data, read.error.is_none()), (content(1).to_vec(), true));
    assert_eq!((server.open_bodies(), began.elapsed().as_millis()), (0, 5100));
}

/// Dropping the body drops the part, and the request for the rest that is in flight.
#[tokio::test(start_paused = true)]
async fn dropped_body_leaves_nothing_open() {
    let server = Server::new([Answer::whole(1, 10), Answer::rest(1, 10, 20).ending(Piece::Stall), Answer::never()]);
    let mut body = client(&server).oneshot(get()).await.unwrap().into_body();
    let hang = tokio::time::timeout(std::time::Duration::from_secs(9), async {
        while http_body_util::BodyExt::frame(&mut body).await.is_some() {}
    });
    assert!(hang.await.is_err());
    assert_eq!((server.seen().len(), server.open_bodies()), (2, 1));
    drop(body);
    assert_eq!(server.open_bodies(), 0);
}

/// The broken part is dropped before the rest is requested, because it may hold a place in a guard.
#[tokio::test(start_paused = true)]
async fn broken_part_is_dropped_before_next() {
    let server = Server::new([Answer::whole(1, 10), Answer::never()]);
    let mut body = client(&server).oneshot(get()).await.unwrap().into_body();
    let hang = tokio::time::timeout(std::time::Duration::from_secs(9), async {
        while http_body_util::BodyExt::frame(&mut body).await.is_some() {}
    });
    assert!(hang.await.is_err());
    assert_eq!((server.seen().len(), server.open_bodies()), (2, 0));
}
