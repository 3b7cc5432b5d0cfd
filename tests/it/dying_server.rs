//! hyper-util's client under the retry layer, with a server that dies at any byte or sends
//! nonsense.
//!
//! Input: the server's behaviour on each connection: the bytes it reads, its answer, and the way it
//! leaves. Output: the requests as they arrived. Three promises hold for every behaviour. The call
//! ends. A POST without a key does not arrive again after its whole head, unless the answer was
//! 429. The memory for bodies is released.

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::body::{ReplayLimits, ReplayMemory};
use reattempt::schedule::Constant;
use reattempt::{RetryLayer, RetryPolicy};
use reattempt_faults::{Arrival, End, Read, Reply, Rule, Script, Server, Step};
use tokio::task::yield_now;
use tokio::time::timeout;
use tower::{ServiceBuilder, ServiceExt};

/// Reached only by a call that hangs.
const HANGS: Duration = Duration::from_secs(30);

type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Methods, and the pieces of the body: one is sent whole, more are streamed.
const REQUESTS: [(&str, &[&str]); 5] = [
    ("GET", &[]),
    ("PUT", &["hello world"]),
    ("PUT", &["hello ", "my ", "dear ", "world"]),
    ("POST", &["hello world"]),
    ("POST", &["hello ", "my ", "dear ", "world"]),
];

fn body(pieces: &'static [&'static str]) -> Body {
    match pieces {
        [] => Empty::new().boxed_unsync(),
        [whole] => Full::from(*whole).boxed_unsync(),
        _ => {
            let frames = pieces.iter().map(|piece| Ok(Frame::data(Bytes::from(*piece))));
            StreamBody::new(stream::iter(frames)).boxed_unsync()
        }
    }
}

/// Makes one call and checks the three promises; returns the requests whose head has arrived.
async fn call(method: &str, body: Body, script: impl Into<Script<Reply>>, case: &str) -> Vec<Arrival> {
    let server = Server::http1(script.into().may_remain()).await.unwrap();
    let uri = server.url("/");
    let memory = ReplayMemory::new(1024);
    let policy = RetryPolicy::http()
        .backoff(Constant::immediate())
        .protocol(|http| http.replay(ReplayLimits::default().memory(memory.clone())));
    let client = ServiceBuilder::new()
        .layer(RetryLayer::new(policy))
        .service(Client::builder(TokioExecutor::new()).build_http());
    let request = Request::builder().method(method).uri(uri).body(body).unwrap();

    // A response or an error: at many bytes this depends on timing.
    let ended = timeout(HANGS, client.oneshot(request)).await.is_ok();
    assert!(ended, "{case}: the call hangs");
    let ledger = server.ledger().clone();
    drop(server);
    // The client's tasks notice the end of their connections and release their bodies.
    let released = timeout(HANGS, async {
        while memory.used() > 0 {
            yield_now().await;
        }
    });
    assert!(released.await.is_ok(), "{case}: {} bytes are still kept", memory.used());
    let arrived = ledger.arrivals();
    let throttled = arrived.iter().any(|it| it.answer.as_deref() == Some("429, close"));
    if method == "POST" && !throttled {
        ledger.check(Rule::AtMostAttempts(1)).unwrap_or_else(|broken| panic!("{case}: {broken}"));
    }
    arrived
}

#[tokio::test]
async fn server_dies_at_any_byte_of_its_answer() {
    const ANSWER: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello";
    for (method, pieces) in REQUESTS {
        for leave in [End::Close, End::Reset] {
            for written in 0..=ANSWER.len() {
                let case = format!("{method}, {leave:?} after {written} bytes");
                let dies = Step::new(Reply::raw(ANSWER).cut(written).end_with(leave)).always();
                let arrived = call(method, body(pieces), [dies], &case).await.len();
                // One attempt may be lost on a pooled connection that is already dead.
                let expected = if method == "POST" { 1..=1 } else { 2..=3 };
                assert!(expected.contains(&arrived), "{case}: arrived {arrived} times");
            }
        }
    }
}

#[tokio::test]
async fn server_dies_at_any_byte_of_the_request() {
    for (method, pieces) in REQUESTS {
        for leave in [End::Close, End::Reset] {
            for read in 0.. {
                let case = format!("{method}, {leave:?} after {read} bytes");
                let dies = Reply::default().read(Read::Bytes(read)).cut(0).end_with(leave);
                let arrived = call(method, body(pieces), [dies], &case).await;
                if method != "POST" {
                    assert!(arrived.last().is_some_and(|last| last.whole), "{case}: not sent again");
                }
                if arrived.iter().any(|it| it.whole && it.connection == 1) {
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_answers_nonsense() {
    use End::{Close, Open, Reset};
    let text = |text: &str| text.as_bytes().to_vec();
    let refusal = |fields: &str| text(&format!("HTTP/1.1 503 Busy\r\n{fields}\r\n"));
    let chunked = |chunks: &str| [refusal("Transfer-Encoding: chunked\r\n"), text(chunks)].concat();
    let sized = |length: &str| refusal(&format!("Content-Length: {length}\r\n"));
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(5_000);
    let cases = [
        ("garbage", Read::Whole, text("\0\u{1}garbage\r\n\r\n"), Close),
        ("another protocol", Read::Whole, text("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Close),
        ("informational for ever", Read::Whole, text(&hints), Close),
        ("much informational", Read::Whole, [text(&hints), sized("0")].concat(), Open),
        ("unasked 101", Read::Whole, text("HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"), Open),
        ("status 999", Read::Whole, text("HTTP/1.1 999 X\r\nContent-Length: 0\r\n\r\n"), Open),
        ("two answers", Read::Whole, sized("0").repeat(2), Open),
        ("no length", Read::Whole, refusal(""), Open),
        ("chunks for ever", Read::Whole, chunked(&"1\r\na\r\n".repeat(100_000)), Open),
        ("a chunk size of letters", Read::Whole, chunked("ZZ\r\na"), Open),
        ("the largest chunk size", Read::Whole, chunked("fffffffffffffffe\r\na"), Open),
        ("a chunk size that overflows", Read::Whole, chunked("ffffffffffffffffff\r\na"), Open),
        ("the largest length", Read::Whole, sized("18446744073709551613"), Open),
        ("a length that overflows", Read::Whole, sized("18446744073709551616"), Open),
        ("two lengths", Read::Whole, sized("3\r\nContent-Length: 4"), Open),
        ("too many fields", Read::Whole, refusal(&"X-A: b\r\n".repeat(101)), Close),
        ("too large fields", Read::Whole, refusal(&"X-A: bbbbbbbbb\r\n".repeat(50_000)), Close),
        ("early, kept open", Read::Head, sized("0"), Open),
        ("early, closed", Read::Head, sized("0"), Close),
        ("early, announced", Read::Head, sized("0\r\nConnection: close"), Close),
        ("early, reset", Read::Head, sized("0"), Reset),
        ("before the request, kept open", Read::Bytes(0), sized("0"), Open),
        ("before the request, closed", Read::Bytes(0), sized("0"), Close),
    ];
    for (name, read, answer, leave) in cases {
        for (method, pieces) in REQUESTS {
            let nonsense = Step::new(Reply::raw(answer.clone()).read(read).end_with(leave)).always();
            call(method, body(pieces), [nonsense], &format!("{method}, {name}")).await;
        }
    }
    let throttled = Reply::status(StatusCode::TOO_MANY_REQUESTS).read(Read::Head).end_with(Close);
    for (method, pieces) in REQUESTS {
        let throttled = Step::new(throttled.clone()).always();
        call(method, body(pieces), [throttled], &format!("{method}, early 429")).await;
    }
}
