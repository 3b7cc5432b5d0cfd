//! Tests with real clients through a relay or a connector, in front of a server that answers every request.

use std::net::SocketAddr;
use std::time::Duration;

use reattempt_faults::{Break, Faults, WireFault};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;

/// Reached only by a hanging test.
pub(super) const HANGS: Duration = Duration::from_secs(30);

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

/// Starts a server that responds on each connection, to requests without a body.
pub(super) async fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut read = Vec::new();
                while !read.ends_with(b"\r\n\r\n") {
                    read.push(stream.read_u8().await?);
                }
                stream.write_all(ANSWER).await?;
                stream.read_to_end(&mut read).await
            });
        }
    });
    address
}

#[tokio::test]
async fn reqwest_meets_every_fault_in_a_relay() {
    let head = ANSWER.len() as u64 - 5;
    let faults = Faults::new([
        WireFault::Refuse,
        WireFault::write(10, Break::Reset),
        WireFault::read(head, Break::Close),
        WireFault::read(0, Break::Garbage("nonsense\r\n\r\n".into())),
        WireFault::NoFault,
    ]);
    let relay = faults.relay(server().await).await.unwrap();
    let url = format!("http://{}/", relay.address());
    let mut seen = Vec::new();
    for _ in 0..5 {
        let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never());
        let answer = timeout(HANGS, client.build().unwrap().get(&url).send()).await.unwrap();
        seen.push(match answer {
            Ok(response) => timeout(HANGS, response.text()).await.unwrap().is_ok().to_string(),
            Err(error) => format!("{:?}", (error.is_connect(), error.is_request())),
        });
    }
    assert_eq!(seen, ["(false, true)", "(false, true)", "false", "(false, true)", "true"]);
    assert_eq!(faults.ledger().connections(), 5);
    timeout(HANGS, faults.ledger().all_closed()).await.unwrap();
}

#[test]
fn tls_alert_and_record_are_whole_records() {
    assert_eq!(Break::tls_alert(80), Break::Garbage(vec![21, 3, 3, 0, 2, 2, 80].into()));
    let Break::Garbage(record) = Break::broken_record() else { panic!("garbage") };
    assert_eq!((record.len(), &record[..5]), (37, &[23, 3, 3, 0, 32][..]));
}
