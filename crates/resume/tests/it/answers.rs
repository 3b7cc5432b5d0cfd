//! Every wrong answer to a request for the rest.

use std::io::ErrorKind;

use http::{Extensions, Uri};
use reattempt::resume::{Mismatch, NotContinued};
use tower::ServiceExt;

use super::support::{
    Answer, BoxError, LENGTH, Piece, Server, assert_broken, content, download, get, layer, mismatch, read,
};

/// The caller reads the first 400 bytes, then gets the break. No byte of the answer is joined.
#[tokio::test(start_paused = true)]
async fn wrong_answer_is_never_joined() {
    let rest = || Answer::rest(1, 400, LENGTH);
    let range = |range: &str| rest().with("content-range", range);
    let rows = [
        ("the whole content, changed", Answer::whole(2, LENGTH)),
        ("206 of another version", Answer::rest(2, 400, LENGTH)),
        ("206 of another version, with the old range", Answer::rest(2, 400, LENGTH).with("etag", "\"2\"")),
        ("a weak tag", rest().with("etag", "W/\"1\"")),
        ("no validator", rest().with("etag", "")),
        ("a date only", rest().with("etag", "").with("last-modified", "Thu, 26 Nov 2026 12:00:00 GMT")),
        ("a later range", Answer::rest(1, 401, LENGTH)),
        ("an earlier range that does not reach the rest", range("bytes 300-399/1000")),
        ("the whole content with a weak tag", Answer::whole(1, LENGTH).with("etag", "W/\"1\"")),
        ("the whole content without a length", Answer::whole(1, LENGTH).with("content-length", "")),
        ("the whole content of another length", Answer::whole(1, LENGTH).with("content-length", 1001)),
        ("the whole content, encoded", Answer::whole(1, LENGTH).with("content-encoding", "gzip")),
        ("a longer range", range("bytes 400-1000/1001")),
        ("a changed total", range("bytes 400-999/1001")),
        ("no range", range("")),
        ("garbage", range("bytes")),
        ("a number past u64", range("bytes 400-999/18446744073709551616")),
        ("a number that wraps to 400", range("bytes 18446744073709552016-999/1000")),
        ("another unit", range("seconds 400-999/1000")),
        ("several parts", rest().with("content-type", "multipart/byteranges; boundary=b")),
        ("an encoding", rest().with("content-encoding", "gzip")),
        ("a shorter content-length", rest().with("content-length", 599)),
        ("a longer content-length", rest().with("content-length", 601)),
        ("a body of another length", rest().exact(599)),
        ("206 without a head", Answer::status(206)),
        ("204", Answer::status(204)),
        ("304", Answer::status(304).with("etag", "\"1\"")),
        ("302", Answer::status(302).with("location", "/other")),
        ("404", Answer::status(404)),
        ("412", Answer::status(412)),
        ("416", Answer::status(416).with("content-range", "bytes */399")),
        ("501", Answer::status(501)),
        ("a request that cannot be sent", Answer::failing(ErrorKind::InvalidInput)),
    ];
    for (name, answer) in rows {
        let server = Server::new([Answer::whole(1, 400), answer, rest()]);
        let read = download(&server).await;
        assert_broken(&read, 1, 400);
        assert_eq!(server.seen().len(), 2, "{name}: no further request");
        assert_eq!(server.open_bodies(), 0, "{name}");
    }
}

/// The error contains the numbers that differ, and the break.
#[tokio::test(start_paused = true)]
async fn refusal_names_its_numbers() {
    let rest = || Answer::rest(1, 400, LENGTH);
    let rows = [
        (Answer::rest(1, 401, LENGTH), Mismatch::Range { expected: 400, first: 401, last: 999 }),
        (rest().with("content-range", "bytes 400-999/1001"), Mismatch::Total { expected: 1000, found: 1001 }),
        (rest().with("content-length", 599), Mismatch::Length { expected: 600, found: Some(599) }),
        (rest().exact(599), Mismatch::Length { expected: 600, found: Some(599) }),
        (Answer::status(416).with("content-range", "bytes */399"), Mismatch::Unsatisfied { expected: 400, total: 399 }),
        (rest().with("etag", "W/\"1\""), Mismatch::Validator),
    ];
    for (answer, expected) in rows {
        let server = Server::new([Answer::whole(1, 400), answer]);
        let read = download(&server).await;
        assert_broken(&read, 1, 400);
        assert_eq!(mismatch(&read), Some(expected));
        let error = read.error.unwrap();
        assert!(error.to_string().starts_with("the body broke off: the response does not continue the body: "));
        let broke = error.downcast::<NotContinued>().unwrap().into_break();
        assert!(broke.is::<std::io::Error>());
    }
}

/// Failures that are worth a retry are followed by another resume.
#[tokio::test(start_paused = true)]
async fn failed_resume_is_followed_by_another() {
    let cut = |pieces| Answer { pieces, ..Answer::rest(1, 400, LENGTH) };
    let rows = [
        ("503", Answer::status(503)),
        ("500", Answer::status(500)),
        ("429", Answer::status(429)),
        ("408", Answer::status(408)),
        ("a lost connection", Answer::failing(ErrorKind::ConnectionReset)),
        ("no connection", Answer::failing(ErrorKind::ConnectionRefused)),
        ("a part without a byte", cut(vec![Piece::Error(ErrorKind::UnexpectedEof)])),
        ("a part that ends at once", cut(vec![])),
        ("a part with an empty frame", cut(vec![Piece::Data("".into())])),
    ];
    for (name, answer) in rows {
        let server = Server::new([Answer::whole(1, 400), answer, Answer::rest(1, 400, LENGTH)]);
        let read = download(&server).await;
        assert!(read.error.is_none(), "{name}");
        assert_eq!((read.data, server.seen().len()), (content(1).to_vec(), 3), "{name}");
    }
}

/// Only the first break's validator counts: a second resume with another version is not joined either.
#[tokio::test(start_paused = true)]
async fn change_after_a_resume_is_not_joined() {
    let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, 700), Answer::rest(2, 700, LENGTH)]);
    assert_broken(&download(&server).await, 1, 700);
}

/// Adds the address that the client below responds from.
type Add = fn(&mut Extensions, Uri);

/// A part from another address than the first response is joined if it has the same entity tag and total length: a
/// redirect to a signed URL is another one each time. With a date, another host may only be a replica, if the path is
/// the one that the caller requested.
// field 29
#[tokio::test(start_paused = true)]
async fn part_of_other_address_is_not_joined() {
    const ASKED: &str = "http://one.example/file?a=b";
    let rows = [
        (None, None, true),
        (Some(ASKED), Some(ASKED), true),
        (Some(ASKED), None, false),
        (None, Some(ASKED), false),
        (Some(ASKED), Some("http://two.example/file?a=b"), true),
        (Some(ASKED), Some("http://one.example/file?a=c"), false),
        (Some("http://one.example/x"), Some("http://one.example/x"), true),
        (Some("http://one.example/x"), Some("http://two.example/x"), false),
        (Some("http://one.example/x"), Some("https://one.example/x"), false),
        (Some("http://one.example/x"), Some("http://one.example:81/x"), false),
    ];
    let adds: [Add; 2] = [
        |extensions, uri| drop(extensions.insert(tower_http::follow_redirect::RequestUri(uri))),
        |extensions, uri| drop(extensions.insert(tower_http_of_reqwest::follow_redirect::RequestUri(uri))),
    ];
    let modified = "Thu, 26 Nov 2026 12:00:00 GMT";
    let dated = |answer: Answer| {
        answer.with("etag", "").with("last-modified", modified).with("date", "Thu, 26 Nov 2026 12:01:00 GMT")
    };
    let tagged: fn(Answer) -> Answer = |answer| answer;
    let unknown = |answer: Answer| match answer.status {
        206 => answer.with("content-range", "bytes 400-999/*"),
        _ => answer,
    };
    for ((first, part, joined), add) in rows.into_iter().flat_map(|row| adds.map(|add| (row, add))) {
        let is_known = first.is_some() == part.is_some();
        let kinds: [(&dyn Fn(Answer) -> Answer, bool); 3] = [(&dated, joined), (&unknown, joined), (&tagged, is_known)];
        for (kind, joined) in kinds {
            let server = Server::new([Answer::whole(1, 400), Answer::rest(1, 400, LENGTH)].map(kind));
            let send = move |address: Option<&'static str>| {
                let call = server.clone().oneshot(get());
                async move {
                    let mut response = call.await?;
                    if let Some(address) = address {
                        add(response.extensions_mut(), Uri::from_static(address));
                    }
                    Ok::<_, BoxError>(response)
                }
            };
            let response = send(first).await.unwrap();
            let read = read(layer().resumed(&get(), response, move |_| send(part)).into_body()).await;
            assert_eq!(read.error.is_none(), joined, "{first:?} {part:?}");
            if joined {
                assert_eq!(read.data, content(1));
            } else {
                assert_broken(&read, 1, 400);
                assert_eq!(mismatch(&read), Some(Mismatch::Resource));
            }
        }
    }
}
