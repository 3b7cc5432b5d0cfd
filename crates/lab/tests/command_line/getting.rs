//! `lab get` with a server that follows a script.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener};
use std::thread::JoinHandle;

use tokio::net::TcpSocket;

use super::{run, scratch, wrote};

/// Starts a server that answers one request per connection, in this order, and returns the
/// requests.
fn server(answers: &'static [&'static str]) -> (SocketAddr, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let serving = std::thread::spawn(move || {
        let answer = |answer: &&str| {
            let (mut stream, _) = listener.accept().unwrap();
            let request = BufReader::new(stream.try_clone().unwrap())
                .lines()
                .map(Result::unwrap)
                .take_while(|line| !line.is_empty())
                .collect::<Vec<_>>();
            write!(stream, "HTTP/1.1 {answer}\r\nconnection: close\r\n\r\n").unwrap();
            request.join("\n")
        };
        answers.iter().map(answer).collect()
    });
    (address, serving)
}

/// Reserves a port without a listener for as long as the socket lives; returns its URL.
pub(super) fn nobody() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/", socket.local_addr().unwrap());
    (socket, url)
}

const UNAVAILABLE: &str = "503 Service Unavailable\r\ncontent-length: 0";
const FINE: &str = "200 OK\r\ncontent-length: 0";

#[test]
fn attempts_as_a_time_line() {
    let (address, serving) = server(&[UNAVAILABLE, UNAVAILABLE, FINE]);
    let (url, picture) = (format!("http://{address}/stock"), scratch("get.svg"));
    let (code, text, errors) = run(&[
        "get",
        &url,
        "--policy",
        "constant:base=20ms",
        "--header",
        "accept: text/plain",
        "--plot",
        picture.to_str().unwrap(),
    ]);
    assert_eq!((code, errors), (0, wrote(&picture)));
    let lines: Vec<_> = text.lines().collect();
    assert!(lines[0].starts_with("200 OK, 0 bytes after 3 attempts and "), "{text}");
    assert!(lines[0].ends_with(": succeeded"), "{text}");
    assert!(lines[2].starts_with("  1  █") && lines[2].ends_with("  server (503)"), "{text}");
    assert!(lines[4].starts_with("  3  ") && lines[4].ends_with("  200 OK"), "{text}");
    assert!(std::fs::read_to_string(picture).unwrap().contains("waiting"));
    let requests = serving.join().unwrap();
    assert_eq!(requests.len(), 3);
    for request in requests {
        assert!(request.starts_with("GET /stock HTTP/1.1\n"), "{request}");
        assert!(request.contains("accept: text/plain"), "{request}");
    }
}

#[test]
fn a_call_that_fails_ends_with_1() {
    let (address, serving) = server(&[UNAVAILABLE, UNAVAILABLE]);
    let url = format!("http://{address}/");
    let (code, text, errors) = run(&["get", &url, "-p", "constant:base=1ms,max_attempts=2", "--json"]);
    assert_eq!((code, &*errors), (1, ""));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["status"], 503);
    assert_eq!(document["stopped"], "all allowed attempts have been made");
    let attempts = document["attempts"].as_array().unwrap();
    assert_eq!(attempts.len(), 2);
    assert_eq!(attempts[0]["delay"], 0.001);
    let began = attempts[1]["began"].as_f64().unwrap();
    assert!(began - attempts[0]["ended"].as_f64().unwrap() >= 0.000_999, "{text}");
    serving.join().unwrap();

    let (address, serving) = server(&["404 Not Found\r\ncontent-length: 3\r\n\r\nno!\r\n"]);
    let (code, text, _) = run(&["get", &format!("http://{address}/")]);
    assert_eq!(code, 1);
    assert!(text.starts_with("404 Not Found, 3 bytes after 1 attempt and "), "{text}");
    assert!(text.contains(": the failure is permanent\n"), "{text}");
    serving.join().unwrap();
}

/// The retries end with the answer's head, so for the layer the call succeeded.
#[test]
fn a_body_that_breaks_off() {
    let (address, serving) = server(&[UNAVAILABLE, "200 OK\r\ncontent-length: 9"]);
    let (code, text, _) = run(&["get", &format!("http://{address}/"), "-p", "list:1ms"]);
    assert_eq!(code, 1);
    let first = text.lines().next().unwrap();
    assert!(first.starts_with("200 OK, but its body broke off: "), "{text}");
    assert!(first.contains(", after 2 attempts and ") && !first.contains("succeeded"), "{text}");
    serving.join().unwrap();
}

/// A refused connection has sent nothing, so the request is sent again.
#[test]
fn a_server_that_is_not_there() {
    let (_socket, url) = nobody();
    let (code, text, _) = run(&["get", &url, "-p", "list:1ms,1ms"]);
    assert_eq!(code, 1);
    assert!(text.contains("Connection refused"), "{text}");
    assert!(text.contains(" after 3 attempts and "), "{text}");
    assert_eq!(text.matches("  connect: ").count(), 3, "{text}");
}

#[test]
fn an_attempt_that_hangs_is_ended() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let policy = "constant:base=1ms,max_attempts=2";
    let (code, text, _) = run(&["get", &url, "-p", policy, "--attempt-timeout", "20ms"]);
    assert_eq!(code, 1);
    assert_eq!(text.matches("  timeout").count(), 2, "{text}");
}

#[test]
fn the_policies_of_a_file() {
    let file = scratch("get.toml");
    let text = "[never]\nmax_attempts = 1\n[once]\nmax_attempts = 2\nbase = \"1ms\"\n";
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let (_socket, url) = nobody();
    let attempts = |more: &[&str]| run(&[&["get", &url, "--file", file], more].concat()).1;
    assert!(attempts(&[]).contains(" after 1 attempt and "));
    assert!(attempts(&["-p", "once"]).contains(" after 2 attempts and "));
    let (code, _, errors) = run(&["get", &url, "--file", file, "-p", "twice"]);
    assert_eq!(code, 2);
    assert!(errors.ends_with("get.toml has no policy of the name twice\n"), "{errors}");
}

#[test]
fn what_is_no_url() {
    for url in ["example.org", "ftp://example.org", "http://", "http://a b", "/path"] {
        let (code, _, errors) = run(&["get", url]);
        assert_eq!(code, 2, "{url}");
        assert!(errors.contains(&format!("error: invalid value '{url}' for '<URL>'")), "{errors}");
    }
}
