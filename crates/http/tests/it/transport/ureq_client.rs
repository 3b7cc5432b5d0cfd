//! ureq's errors, provoked on loopback.

use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use reattempt_core::{Fault, Verdict};
use reattempt_http::{fault_of_error, verdict_of_error, verdict_of_status};
use ureq::{Agent, Error};

use super::{LOST, NOT_CONNECTED, TIMED_OUT};

fn agent(http_status_as_error: bool) -> Agent {
    let settings = Agent::config_builder()
        .http_status_as_error(http_status_as_error)
        .timeout_recv_response(Some(Duration::from_millis(50)))
        .proxy(None);
    settings.build().into()
}

/// Returns the error of a GET whose connection is served by this function.
fn failing(serve: impl FnOnce(TcpStream) + Send + 'static) -> Error {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || serve(listener.accept().unwrap().0));
    let error = agent(true).get(url).call().unwrap_err();
    server.join().unwrap();
    error
}

#[test]
fn refused_connection_is_not_processed() {
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    drop(listener);
    let error = agent(true).get(url).call().unwrap_err();
    assert_eq!(verdict_of_error(&error), Some(NOT_CONNECTED), "{error:?}");
    assert_eq!(fault_of_error(&error), None);
}

#[test]
fn closed_connection_is_lost() {
    let error = failing(drop);
    assert_eq!(verdict_of_error(&error), Some(LOST), "{error:?}");
    let error = failing(|mut connection| connection.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").unwrap());
    assert_eq!(verdict_of_error(&error), Some(LOST), "{error:?}");
}

#[test]
fn no_response_in_time_is_transient() {
    let (done, wait) = std::sync::mpsc::channel::<()>();
    let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let server = thread::spawn(move || {
        let connection = listener.accept().unwrap();
        let _ = wait.recv();
        drop(connection);
    });
    let error = agent(true).get(url).call().unwrap_err();
    drop(done);
    server.join().unwrap();
    assert_eq!(verdict_of_error(&error), Some(TIMED_OUT), "{error:?}");
}

#[test]
fn status_error_has_verdict_of_status() {
    for status in [404, 429, 503] {
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        let error = failing(move |mut connection| {
            connection.write_all(answer.as_bytes()).unwrap();
            // The client closes first, so that no reset takes the answer away.
            let _ = std::io::copy(&mut connection, &mut std::io::sink());
        });
        let expected = verdict_of_status(http::StatusCode::from_u16(status).unwrap());
        assert_eq!(verdict_of_error(&error), Some(expected), "{error:?}");
    }
}

#[test]
fn each_other_error_has_its_verdict() {
    for (error, verdict, fault) in [
        (Error::HostNotFound, Some(NOT_CONNECTED), Some(Fault::Local)),
        (Error::ConnectionFailed, Some(NOT_CONNECTED), None),
        (Error::ConnectProxyFailed("proxy server responded 502/502".into()), Some(NOT_CONNECTED), Some(Fault::Local)),
        (
            Error::ConnectProxyFailed("proxy server responded 407/407".into()),
            Some(Verdict::Permanent),
            Some(Fault::Local),
        ),
        (Error::Timeout(ureq::Timeout::Connect), Some(NOT_CONNECTED), None),
        (Error::Timeout(ureq::Timeout::Global), Some(TIMED_OUT), None),
        (Error::BadUri("x".into()), None, None),
        (Error::TooManyRedirects, None, None),
    ] {
        assert_eq!((verdict_of_error(&error), fault_of_error(&error)), (verdict, fault), "{error:?}");
    }
}
