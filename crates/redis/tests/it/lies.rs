//! Tests of servers that lie. A process believes an answer only if it has the form of its script's, with the mark of
//! its message. Even then its own budget decides first.

use std::sync::atomic::Ordering;
use std::time::Duration;

use reattempt_core::{Budget, Evidence, Failure, FailureKind};
use reattempt_redis::rate::Rate;
use reattempt_redis::{BudgetStore, RateStore, RedisStore, StoreFailed};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::liar::{Liar, check, server};
use crate::support::{ask, budget, confirmed, retries_withheld, retry};

/// The server of the tests below is believed if it answers as the script does.
#[tokio::test]
async fn answer_of_the_script_is_believed() {
    let Liar { url, .. } = server("*2\r\n:1\r\nMARK").await;
    let budget = budget(&url);
    assert!(retry(&budget).await);
    assert_eq!(budget.stats().granted, 1);
}

#[tokio::test]
async fn answer_of_another_script_leaves_alone() {
    let nested = [b"*1\r\n".repeat(100_000), b":1\r\n".to_vec()].concat();
    let long = [b"$1000000\r\n".to_vec(), vec![b'x'; 1_000_000], b"\r\n".to_vec()].concat();
    let replies: [&[u8]; 27] = [
        b"*2\r\n:-1\r\nMARK",
        b"*2\r\n:2\r\nMARK",
        b"*2\r\n:4294967297\r\nMARK",
        b"*2\r\n:1\r\n$2\r\n-1\r\n",
        b"*2\r\n:1\r\n$20\r\n18446744073709551615\r\n",
        b"*2\r\n:1\r\n:4\r\n",
        b"*2\r\n:1\r\n$-1\r\n",
        b"*2\r\n$3\r\nyes\r\nMARK",
        b"*2\r\n*0\r\nMARK",
        b"*2\r\n:7\r\n*1\r\nMARK",
        b"*1\r\n:1\r\n",
        b"*0\r\n",
        b"*-1\r\n",
        b"*3\r\n:1\r\nMARK:1\r\n",
        b"$-1\r\n",
        b"$4\r\n\xff\xfe\0\x01\r\n",
        b":1\r\n",
        b"+OK\r\n",
        b"+\r\n",
        b"-\r\n",
        b"-NOSCRIPT\r\n",
        b"_\r\n",
        b"%1\r\n+a\r\n:1\r\n",
        b">2\r\n+message\r\n:1\r\n",
        b"*1000000000000000000\r\n:1\r\n",
        b"$1000000000000000000\r\nx",
        b"?",
    ];
    for reply in replies.into_iter().chain([&*nested, &*long]) {
        let Liar { url, .. } = server(reply).await;
        let budget = budget(&url);
        retries_withheld(&budget).await;
        let stats = budget.stats();
        assert!(
            stats.failed + stats.late > 0,
            "{:?}: {stats:?}",
            String::from_utf8_lossy(&reply[..reply.len().min(60)])
        );
    }
}

/// Parts of replies, in any order and broken off anywhere, are errors or an answer with its mark.
#[tokio::test]
async fn any_reply_has_a_defined_end() {
    const PARTS: [&[u8]; 16] = [
        b"*2\r\n",
        b"*1\r\n",
        b"*-1\r\n",
        b":1\r\n",
        b":0\r\n",
        b":-9223372036854775808\r\n",
        b"MARK",
        b"$-1\r\n",
        b"$3\r\n1.5\r\n",
        b"+OK\r\n",
        b"-ERR a\r\n",
        b"%1\r\n",
        b"~1\r\n",
        b"_\r\n",
        b",inf\r\n",
        b"\xff\0",
    ];
    for (first, second) in PARTS.into_iter().flat_map(|first| PARTS.map(|second| (first, second))) {
        let reply = [b"*2\r\n", first, second].concat();
        check(&reply).await;
        check(&reply[4..]).await;
        check(&reply[..reply.len() - 1]).await;
    }
    for (reply, believed) in [("*2\r\n:1\r\nMARK", true), ("*2\r\n:7\r\nMARK", false)] {
        let store = RedisStore::new(&server(reply).await.url).unwrap();
        assert_eq!(store.settle("k", 0, 1, 0).await.is_ok(), believed);
    }
}

/// Grants for ever: the budget of each process is the floor, with three retries for a client without a success.
// F-12
#[tokio::test]
async fn eternal_grants_do_not_breach_the_floor() {
    let Liar { url, .. } = server("*2\r\n:1\r\nMARK").await;
    for (kind, most) in [(FailureKind::Server, 3), (FailureKind::Network, 10)] {
        let budget = budget(&url);
        let mut sent = 0;
        for _ in 0..100 {
            // Lost calls that were sent before the first loss was seen are one event.
            let evidence = Evidence::from(Failure::new(kind)).sent_at(Duration::ZERO);
            let Some(permit) = budget.acquire_after_failure("a", &evidence, Duration::ZERO) else { continue };
            assert!(confirmed(&permit).await);
            drop(permit.spend());
            sent += 1;
        }
        assert_eq!((sent, budget.stats().granted), (most, most));
    }
}

/// Refuses for ever: no retry is sent, and the process asks at most once a second after the fourth refusal.
// F-8
#[tokio::test]
async fn eternal_refusals_are_remembered() {
    let Liar { url, .. } = server("*2\r\n:0\r\nMARK").await;
    let budget = budget(&url);
    for _ in 0..200 {
        if let Some(permit) = ask(&budget) {
            assert!(!confirmed(&permit).await);
        }
    }
    let stats = budget.stats();
    assert_eq!((stats.granted, stats.alone), (0, 0), "{stats:?}");
    assert!(stats.remembered > 190, "{stats:?}");
}

/// A grant of more tokens than were asked for is an error, not an overflow.
#[tokio::test]
async fn wrong_number_of_tokens_is_an_error() {
    let number = |number: u32| number.try_into().unwrap();
    let rate = Rate::new(number(10), number(10));
    for answer in [":-1", ":2", ":4294967297", "$3\r\n1.5"] {
        let reply = format!("*2\r\n*2\r\n{answer}\r\n:1\r\nMARK");
        let Liar { url, .. } = server(reply).await;
        RedisStore::new(&url).unwrap().take("k", rate, 1).await.unwrap_err();
    }
}

/// A message that may have arrived is not sent again, whatever became of it. A server without the script gets it once.
// F-7
#[tokio::test]
async fn no_message_is_sent_again() {
    let replies = ["", "-LOADING a\r\n", "-TRYAGAIN a\r\n", "-BUSY a\r\n", "-READONLY a\r\n", "-ERR a\r\n", ":1\r\n"];
    let once = replies.map(|reply| (reply, 1));
    for (reply, expected) in once.into_iter().chain([("-NOSCRIPT a\r\n", 2)]) {
        let Liar { url, scripts, .. } = server(reply).await;
        RedisStore::new(&url).unwrap().settle("k", 0, 1, 0).await.unwrap_err();
        assert_eq!(scripts.load(Ordering::Relaxed), expected, "{reply:?}");
    }
}

/// The first word of an error is shown only if it is a known code. A server may repeat a password there.
#[tokio::test]
async fn unknown_code_of_an_error_is_left_out() {
    for (code, is_known) in [("OOM", true), ("NOPERM", true), ("XYZZY_PLUGH", false), ("xyzzy", false)] {
        let Liar { url, .. } = server(format!("-{code} a\r\n")).await;
        let url = url.replace("//", &format!("//user:{code}@"));
        let error = RedisStore::new(&url).unwrap().settle("k", 0, 1, 0).await.unwrap_err();
        let found = error.downcast_ref::<StoreFailed>().unwrap().code();
        assert_eq!(found, is_known.then_some(code));
        assert_eq!(format!("{error} {error:?}").contains(code), is_known, "{error:?}");
    }
}

/// Starts a server that answers the first script with `head`, and then with `chunk` until the connection ends. Returns
/// its URL, and the number of bytes that it sent.
async fn flood(head: &'static str, chunk: String) -> (String, JoinHandle<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("redis://{}", listener.local_addr().unwrap());
    let sent = tokio::spawn(async move {
        let (mut connection, mut buffer) = (listener.accept().await.unwrap().0, [0; 8192]);
        loop {
            let read = connection.read(&mut buffer).await.unwrap();
            let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
            if text.contains("EVAL") {
                break;
            }
            let commands = text.split("\r\n").filter(|line| line.starts_with('*')).count();
            connection.write_all("+OK\r\n".repeat(commands).as_bytes()).await.unwrap();
        }
        let mut sent = connection.write(head.as_bytes()).await.unwrap();
        while let Ok(more) = connection.write(chunk.as_bytes()).await {
            sent += more;
        }
        sent
    });
    (url, sent)
}

/// A reply without an end is cut off: neither the process's memory nor its time is the server's.
#[tokio::test]
async fn endless_reply_is_cut_off() {
    let (text, number) = ("x".repeat(1 << 16), ":1\r\n".repeat(1 << 14));
    for (head, chunk) in [("$100000000000\r\n", &text), ("*1000000000\r\n", &number), ("*2\r\n:1\r\n+", &text)] {
        let (url, sent) = flood(head, chunk.clone()).await;
        let store = RedisStore::new(&url).unwrap();
        let answer = timeout(Duration::from_secs(10), store.settle("k", 0, 1, 0)).await.unwrap();
        assert_eq!(answer.unwrap_err().to_string(), "the store failed: the connection failed", "{head:?}");
        let sent = timeout(Duration::from_secs(10), sent).await.unwrap().unwrap();
        // The rest was in the buffers of the sockets.
        assert!(sent < 32 << 20, "{head:?}: {sent}");
    }
}

/// Each failure replaces the connection, and the old one is closed: nothing is left behind.
#[tokio::test]
async fn failures_leave_no_connections_open() {
    let Liar { url, open, .. } = server("*2\r\n:1\r\n:77777\r\n").await;
    let store = RedisStore::new(&url).unwrap();
    for _ in 0..50 {
        store.settle("k", 0, 1, 0).await.unwrap_err();
    }
    let closed = async {
        while open.load(Ordering::Relaxed) > 1 {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(10), closed).await.unwrap();
}
