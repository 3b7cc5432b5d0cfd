//! Tests of the HTTP/1.1 server, with clients that check every byte and with real ones.

use std::time::Duration;

use http::header::{HeaderValue, RETRY_AFTER};
use http::{HeaderMap, StatusCode};
use reattempt_faults::{End, Read, Reply, Rule, Server, Step};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Reached only by a hanging test.
const HANGS: Duration = Duration::from_secs(30);

const BUSY: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

/// Sends these bytes and closes. Returns everything that the server sends, and `true` if it ends with a reset.
async fn send(server: &Server, bytes: &str) -> (String, bool) {
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    let mut read = Vec::new();
    let exchange = async {
        stream.write_all(bytes.as_bytes()).await?;
        stream.shutdown().await?;
        stream.read_to_end(&mut read).await
    };
    let reset = timeout(HANGS, exchange).await.unwrap().is_err();
    (String::from_utf8(read).unwrap(), reset)
}

const GET: &str = "GET /a?b HTTP/1.1\r\nhost: one\r\n\r\n";
const POST: &str = "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello";

#[tokio::test]
async fn replies_are_sent_byte_for_byte() {
    let mut trailers = HeaderMap::new();
    trailers.insert("checksum", HeaderValue::from_static("7"));
    let busy = || Reply::status(BUSY);
    let rows = [
        (
            busy().header(RETRY_AFTER, 3.into()).body("no"),
            "HTTP/1.1 503 Service Unavailable\r\nretry-after: 3\r\ncontent-length: 2\r\n\r\nno",
        ),
        (
            Reply::default().informational(StatusCode::EARLY_HINTS),
            "HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n",
        ),
        (Reply::default().body("short").content_length(9), "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nshort"),
        (Reply::default().body("too long").content_length(3), "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\ntoo long"),
        (
            Reply::default().body("0123456789abcdef!").trailers(trailers),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n11\r\n0123456789abcdef!\r\n0\r\nchecksum: 7\r\n\r\n",
        ),
        (Reply::raw("nonsense").end_with(End::Close), "nonsense"),
        (Reply::default().cut(12).end_with(End::Close), "HTTP/1.1 200"),
        (Reply::stall(), ""),
    ];
    for (reply, expected) in rows {
        let case = format!("{reply:?}");
        let server = Server::http1([reply]).await.unwrap();
        assert_eq!(send(&server, POST).await, (expected.to_owned(), false), "{case}");
    }
    let server = Server::http1([Reply::reset()]).await.unwrap();
    assert_eq!(send(&server, POST).await, (String::new(), true));
}

#[tokio::test]
async fn ledger_has_request_and_answer() {
    let server = Server::http1([Reply::status(BUSY), Reply::default().cut(3).end_with(End::Close)]).await.unwrap();
    let chunked = "PUT /c HTTP/1.1\r\nfaults-call: two\r\ntransfer-encoding: chunked\r\n\r\n\
                   2\r\nhe\r\n3;x=y\r\nllo\r\n0\r\nchecksum: 7\r\n\r\n";
    send(&server, &format!("{POST}{chunked}")).await;
    send(&server, GET).await;
    timeout(HANGS, server.ledger().all_closed()).await.unwrap();
    let lines: Vec<_> = server
        .ledger()
        .arrivals()
        .iter()
        .map(|it| {
            let body = String::from_utf8_lossy(&it.body).into_owned();
            (it.connection, it.call.clone(), body, it.answer.clone().unwrap(), it.carried_out)
        })
        .collect();
    let line = |connection, call: &str, body: &str, answer: &str| {
        (connection, call.to_owned(), body.to_owned(), answer.to_owned(), true)
    };
    let expected = [
        line(1, "POST /", "hello", "503"),
        line(1, "two", "hello", "200, cut at 3 B, close"),
        line(2, "GET /a?b", "", "200"),
    ];
    assert_eq!(lines, expected);
}

/// An early response does not wait for the body, and counts as carried out.
#[tokio::test]
async fn early_reply_comes_before_body() {
    let early = Reply::status(BUSY).read(Read::Head);
    let server = Server::http1([early.clone(), early.carried_out(false)]).await.unwrap();
    let mut stream = TcpStream::connect(server.address()).await.unwrap();
    for number in 0..2 {
        let (head, body) = POST.split_at(POST.len() - 5);
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut answer = [0; 55];
        timeout(HANGS, stream.read_exact(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with(b"HTTP/1.1 503"));
        stream.write_all(body.as_bytes()).await.unwrap();
        server.ledger().until(|arrivals| arrivals[number].whole).await;
    }
    let done: Vec<_> = server.ledger().arrivals().iter().map(|it| it.carried_out).collect();
    assert_eq!(done, [true, false]);
}

#[tokio::test]
async fn server_dies_after_bytes_of_request() {
    for (bytes, arrives) in [(0, None), (10, None), (POST.len() - 5, Some("")), (POST.len() - 2, Some("hel"))] {
        let dies = Reply::default().read(Read::Bytes(bytes)).cut(0).end_with(End::Reset);
        let server = Server::http1([dies]).await.unwrap();
        assert_eq!(send(&server, POST).await, (String::new(), true));
        timeout(HANGS, server.ledger().all_closed()).await.unwrap();
        let arrivals = server.ledger().arrivals();
        let bodies: Vec<_> = arrivals.iter().map(|it| String::from_utf8_lossy(&it.body)).collect();
        assert_eq!(bodies, Vec::from_iter(arrives), "{bytes}");
        assert!(arrivals.iter().all(|it| !it.carried_out && !it.whole), "{bytes}");
    }
}

#[tokio::test]
async fn broken_requests_end_their_connection() {
    let server = Server::http1([Reply::status(BUSY)]).await.unwrap();
    for request in [
        "\0\u{1}\r\n\r\n",
        "GET / HTTP/2\r\n\r\n",
        "GET / HTTP/1.1\r\nno colon\r\n\r\n",
        "PUT / HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        "PUT / HTTP/1.1\r\ncontent-length: 99999999999999999999\r\n\r\n",
        "PUT / HTTP/1.1\r\ntransfer-encoding: gzip\r\n\r\n",
        "PUT / HTTP/1.1\r\n\r",
    ] {
        assert_eq!(send(&server, request).await.0, "", "{request}");
        assert!(server.ledger().arrivals().is_empty(), "{request}");
    }
    let chunks = "PUT / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\nffffffffffffffff\r\na";
    assert_eq!(send(&server, chunks).await.0, "");
    assert!(!server.ledger().arrivals()[0].carried_out);
}

/// A reply may wait for a part of the body, whose rest is never sent.
#[tokio::test]
async fn server_dies_after_bytes_of_body() {
    let chunked = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel";
    for request in [&POST[..POST.len() - 2], chunked] {
        let dies = Reply::default().read(Read::Body(3)).cut(0).end_with(End::Reset);
        let server = Server::http1([dies]).await.unwrap();
        let mut stream = TcpStream::connect(server.address()).await.unwrap();
        let (head, body) = request.split_at(request.find("\r\n\r\n").unwrap() + 4);
        stream.write_all(head.as_bytes()).await.unwrap();
        timeout(HANGS, server.ledger().until(|arrivals| arrivals.len() == 1)).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        assert!(timeout(HANGS, stream.read_u8()).await.unwrap().is_err());
        timeout(HANGS, server.ledger().all_closed()).await.unwrap();
        let arrival = &server.ledger().arrivals()[0];
        assert_eq!((&*arrival.body, arrival.whole, arrival.carried_out), (&b"hel"[..], false, true));
    }
}

/// A client that repeats a POST after a lost response is detected, whatever the client.
#[tokio::test]
async fn loop_by_hand_around_reqwest_is_caught() {
    let server = Server::http1([Step::new(Reply::reset()).call("POST /pay")]).await.unwrap();
    let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never());
    let client = client.build().unwrap();
    let send = || client.post(server.url("/pay")).body("tea").send();
    if send().await.is_err() {
        assert_eq!(send().await.unwrap().status(), 200);
    }
    let ledger = server.ledger();
    ledger.bodies_intact().at_most_attempts(2);
    let broken = ledger.check(Rule::NoUnsafeRepeat).unwrap_err();
    assert_eq!(broken.arrivals().len(), 2);
    drop(client);
    timeout(HANGS, ledger.all_closed()).await.unwrap();
    ledger.nothing_left_open();
}
