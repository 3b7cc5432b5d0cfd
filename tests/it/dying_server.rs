//! hyper-util's client under the retry layer, with a server that dies at any byte or sends
//! nonsense.
//!
//! Input: the server's behaviour on each connection: the bytes it reads, its answer, and the way it
//! leaves. Output: the requests as they arrived. Three promises hold for every behaviour. The call
//! ends. A POST without a key does not arrive again after its whole head, unless the answer was
//! 429. The memory for bodies is released.

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures_util::stream;
use http::Request;
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::body::{ReplayLimits, ReplayMemory};
use reattempt::schedule::Constant;
use reattempt::{RetryLayer, RetryPolicy};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinSet, yield_now};
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

/// The bytes of a request that are read before the answer is written.
#[derive(Clone, Copy)]
enum Read {
    /// This number of bytes, or all of a shorter request.
    Bytes(usize),
    Head,
    Whole,
}

impl Read {
    /// Returns the number of bytes to read now; 0 if no more are needed.
    fn missing(self, request: &[u8]) -> usize {
        match self {
            _ if is_whole(request) => 0,
            Self::Bytes(most) => most - request.len(),
            Self::Head if body_of(request).is_some() => 0,
            Self::Head | Self::Whole => usize::MAX,
        }
    }
}

/// The way in which the server leaves a connection after an answer.
#[derive(Debug, Clone, Copy)]
enum Leave {
    /// With a FIN, or with a RST from the kernel if unread bytes remain.
    Close,
    /// With a RST in any case.
    Reset,
    /// Open, for the rest of the request and for the next one, which gets the same treatment.
    Open,
}

/// The server's behaviour on a connection.
#[derive(Clone)]
struct Fate {
    read: Read,
    answer: Bytes,
    leave: Leave,
}

/// Returns the bytes after the head, once the head is complete.
fn body_of(request: &[u8]) -> Option<&[u8]> {
    let end = request.windows(4).position(|window| window == b"\r\n\r\n")?;
    Some(&request[end + 4..])
}

fn is_whole(request: &[u8]) -> bool {
    let Some(body) = body_of(request) else { return false };
    let head = std::str::from_utf8(&request[..request.len() - body.len()]).unwrap();
    match head.split_once("content-length: ") {
        Some((_, rest)) => body.len() >= rest.lines().next().unwrap().parse().unwrap(),
        None => !head.contains("transfer-encoding: chunked") || body.ends_with(b"0\r\n\r\n"),
    }
}

/// The bytes read of each request, in the order of arrival.
type Arrivals = Arc<Mutex<Vec<Vec<u8>>>>;

/// Accepts connections; each has its own behaviour, and the last one is repeated.
async fn accept(listener: TcpListener, fates: Vec<Fate>, arrivals: Arrivals) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        let fate = fates.get(connections.len()).or(fates.last()).unwrap().clone();
        let arrivals = Arc::clone(&arrivals);
        // An error means that the client has left first.
        connections.spawn(async move { serve(stream, fate, arrivals).await.ok() });
    }
}

async fn serve(mut stream: TcpStream, fate: Fate, arrivals: Arrivals) -> io::Result<()> {
    if let Leave::Reset = fate.leave {
        stream.set_zero_linger()?;
    }
    loop {
        let mut number = None;
        read_on(&mut stream, fate.read, &mut number, &arrivals).await?;
        stream.write_all(&fate.answer).await?;
        if !matches!(fate.leave, Leave::Open) {
            return Ok(());
        }
        read_on(&mut stream, Read::Whole, &mut number, &arrivals).await?;
    }
}

/// Reads more of the request with this number, which is assigned at its first byte.
async fn read_on(
    stream: &mut TcpStream,
    read: Read,
    number: &mut Option<usize>,
    arrivals: &Arrivals,
) -> io::Result<()> {
    let mut buffer = [0; 1024];
    loop {
        let most = number
            .map_or(read.missing(b""), |number| read.missing(&arrivals.lock().unwrap()[number]));
        if most == 0 {
            return Ok(());
        }
        let most = most.min(buffer.len());
        let length = stream.read(&mut buffer[..most]).await?;
        if length == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let mut arrivals = arrivals.lock().unwrap();
        let number = *number.get_or_insert_with(|| {
            arrivals.push(Vec::new());
            arrivals.len() - 1
        });
        arrivals[number].extend_from_slice(&buffer[..length]);
    }
}

/// Makes one call and checks the three promises; returns the requests that arrived.
async fn call(method: &str, body: Body, fates: Vec<Fate>, case: &str) -> Vec<Vec<u8>> {
    let throttled = fates.iter().any(|fate| fate.answer.starts_with(b"HTTP/1.1 429"));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let uri = format!("http://{}/", listener.local_addr().unwrap());
    let arrivals = Arrivals::default();
    let server = tokio::spawn(accept(listener, fates, Arc::clone(&arrivals)));
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
    server.abort();
    assert!(server.await.unwrap_err().is_cancelled());
    // The client's tasks notice the end of their connections and release their bodies.
    let released = timeout(HANGS, async {
        while memory.used() > 0 {
            yield_now().await;
        }
    });
    assert!(released.await.is_ok(), "{case}: {} bytes are still kept", memory.used());
    let arrived = std::mem::take(&mut *arrivals.lock().unwrap());
    if method == "POST" && !throttled {
        let first = arrived.iter().position(|request| body_of(request).is_some());
        let after = first.map_or(&[][..], |first| &arrived[first + 1..]);
        assert!(after.is_empty(), "{case}: arrived again");
    }
    arrived
}

#[tokio::test]
async fn server_dies_at_any_byte_of_its_answer() {
    const ANSWER: &[u8] = b"HTTP/1.1 503 Busy\r\nContent-Length: 5\r\nX-A: b\r\n\r\nhello";
    for (method, pieces) in REQUESTS {
        for leave in [Leave::Close, Leave::Reset] {
            for written in 0..=ANSWER.len() {
                let case = format!("{method}, {leave:?} after {written} bytes");
                let answer = Bytes::from_static(&ANSWER[..written]);
                let fate = Fate { read: Read::Whole, answer, leave };
                let arrived = call(method, body(pieces), vec![fate], &case).await.len();
                // One attempt may be lost on a pooled connection that is already dead.
                let expected = if method == "POST" { 1..=1 } else { 2..=3 };
                assert!(expected.contains(&arrived), "{case}: arrived {arrived} times");
            }
        }
    }
}

#[tokio::test]
async fn server_dies_at_any_byte_of_the_request() {
    let ok = Bytes::from_static(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    for (method, pieces) in REQUESTS {
        for leave in [Leave::Close, Leave::Reset] {
            for read in 0.. {
                let case = format!("{method}, {leave:?} after {read} bytes");
                let dies = Fate { read: Read::Bytes(read), answer: Bytes::new(), leave };
                let lives = Fate { read: Read::Whole, answer: ok.clone(), leave: Leave::Open };
                let arrived = call(method, body(pieces), vec![dies, lives], &case).await;
                if method != "POST" {
                    assert!(is_whole(arrived.last().unwrap()), "{case}: not sent again");
                }
                if read > 0 && is_whole(&arrived[0]) {
                    break;
                }
            }
        }
    }
}

#[tokio::test]
async fn a_server_that_answers_nonsense() {
    use Leave::{Close, Open, Reset};
    let text = |text: &str| text.as_bytes().to_vec();
    let refusal = |fields: &str| text(&format!("HTTP/1.1 503 Busy\r\n{fields}\r\n"));
    let chunked = |chunks: &str| [refusal("Transfer-Encoding: chunked\r\n"), text(chunks)].concat();
    let sized = |length: &str| refusal(&format!("Content-Length: {length}\r\n"));
    let hints = "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n".repeat(5_000);
    let throttled = text("HTTP/1.1 429 Slow Down\r\nContent-Length: 0\r\n\r\n");
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
        ("early 429", Read::Head, throttled, Close),
        ("before the request, kept open", Read::Bytes(0), sized("0"), Open),
        ("before the request, closed", Read::Bytes(0), sized("0"), Close),
    ];
    for (name, read, answer, leave) in cases {
        for (method, pieces) in REQUESTS {
            let fate = Fate { read, answer: answer.clone().into(), leave };
            call(method, body(pieces), vec![fate], &format!("{method}, {name}")).await;
        }
    }
}
