//! Tests of an in-memory pipe with a fault, under a paused clock.

use std::io::ErrorKind;

use reattempt_faults::{Break, Faults, FaultyIo, WireFault};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::time::{Instant, timeout};

use crate::support::ms;

/// Returns the client's end with the fault, and the server's end.
fn pipe(fault: WireFault) -> (FaultyIo<DuplexStream>, DuplexStream) {
    let (near, far) = tokio::io::duplex(1024);
    (Faults::new([fault]).wrap(near).unwrap(), far)
}

/// Reads until an error or the end. Returns what was read.
async fn read(io: &mut FaultyIo<DuplexStream>) -> (Vec<u8>, Option<ErrorKind>) {
    let mut read = Vec::new();
    let end = timeout(ms(60_000), io.read_to_end(&mut read)).await;
    match end {
        Ok(end) => (read, end.err().map(|error| error.kind())),
        Err(_) => (read, Some(ErrorKind::TimedOut)),
    }
}

#[tokio::test(start_paused = true)]
async fn read_breaks_after_its_bytes() {
    for (how, expected, end) in [
        (Break::Reset, "hello", Some(ErrorKind::ConnectionReset)),
        (Break::Close, "hello", None),
        (Break::Stall, "hello", Some(ErrorKind::TimedOut)),
        (Break::Garbage("??".into()), "hello?? world", None),
        (Break::Drip(ms(10)), "hello world", None),
    ] {
        let (mut near, mut far) = pipe(WireFault::read(5, how.clone()));
        far.write_all(b"hello world").await.unwrap();
        far.shutdown().await.unwrap();
        let (read, ended) = read(&mut near).await;
        assert_eq!((&*String::from_utf8_lossy(&read), ended), (expected, end), "{how:?}");
        let written = near.write_all(b"more").await;
        assert_eq!(written.is_err(), how == Break::Reset, "the other direction after {how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn write_breaks_after_its_bytes() {
    for (how, expected, end) in [
        (Break::Reset, "hello", Some(ErrorKind::ConnectionReset)),
        (Break::Close, "hello", Some(ErrorKind::BrokenPipe)),
        (Break::Stall, "hello", Some(ErrorKind::TimedOut)),
        (Break::Garbage("??".into()), "hello?? world", None),
        (Break::Drip(ms(10)), "hello world", None),
    ] {
        let (mut near, mut far) = pipe(WireFault::write(5, how.clone()));
        let written = timeout(ms(60_000), near.write_all(b"hello world")).await;
        let ended = written.map_or(Some(ErrorKind::TimedOut), |end| Some(end.err()?.kind()));
        assert_eq!(ended, end, "{how:?}");
        let reset = near.read(&mut []).await.is_err();
        assert_eq!(reset, how == Break::Reset, "the other direction after {how:?}");
        drop(near);
        let mut read = String::new();
        far.read_to_string(&mut read).await.unwrap();
        assert_eq!(read, expected, "{how:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn drip_passes_a_byte_at_a_time() {
    let (mut near, mut far) = pipe(WireFault::read(5, Break::Drip(ms(10))));
    far.write_all(b"hello world").await.unwrap();
    drop(far);
    let began = Instant::now();
    assert_eq!(near.read(&mut [0; 64]).await.unwrap(), 5);
    assert_eq!(began.elapsed(), ms(0));
    for number in 1..=6 {
        assert_eq!(near.read(&mut [0; 64]).await.unwrap(), 1);
        assert_eq!(began.elapsed(), ms(10 * number));
    }
}

#[tokio::test(start_paused = true)]
async fn refused_or_timed_out_before_any_byte() {
    let faults = Faults::new([WireFault::Refuse, WireFault::TimeOut, WireFault::NoFault]);
    let wrap = || faults.wrap(tokio::io::duplex(64).0);
    assert_eq!(wrap().unwrap_err().kind(), ErrorKind::ConnectionRefused);
    let mut stalled = wrap().unwrap();
    timeout(ms(1000), stalled.write_all(b"hello")).await.unwrap_err();
    assert_eq!(faults.ledger().connections(), 2);
    let broken = faults.ledger().check(reattempt_faults::Rule::NothingLeftOpen).unwrap_err();
    assert_eq!(broken.to_string(), "0 exchanges and 1 connections are open");
    drop(stalled);
    drop(wrap());
    faults.ledger().nothing_left_open();
}
