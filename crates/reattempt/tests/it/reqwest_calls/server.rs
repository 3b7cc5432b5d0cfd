//! A scripted HTTP/1.1 server on loopback, and an address without a listener.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// A server that responds to one request per connection, following a script whose last response it repeats.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// The method and path of each request that arrived.
    seen: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Server {
    pub(crate) async fn start(script: impl IntoIterator<Item = String>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let script: Vec<_> = script.into_iter().collect();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let head = read_request(&stream).await.unwrap();
                let arrival = {
                    let mut seen = noted.lock().unwrap();
                    seen.push(head.split(" HTTP/").next().unwrap().to_owned());
                    seen.len()
                };
                let answer = script.get(arrival - 1).or(script.last()).unwrap();
                write(&stream, answer.as_bytes()).await.unwrap();
            }
        });
        Self { address, seen, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a request to the end of its body.
async fn read_request(stream: &TcpStream) -> io::Result<String> {
    let mut text = String::new();
    loop {
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if body.len() >= length.map_or(0, |length| length.parse().unwrap()) {
                return Ok(text);
            }
        }
        stream.readable().await?;
        let mut buffer = [0; 1024];
        match stream.try_read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(length) => text.push_str(str::from_utf8(&buffer[..length]).unwrap()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

async fn write(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        stream.writable().await?;
        match stream.try_write(bytes) {
            Ok(length) => bytes = &bytes[length..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

pub(crate) fn answer(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

pub(crate) fn see_other(location: &str) -> String {
    answer(&format!("303 See Other\r\nlocation: {location}"))
}

/// Returns an address without a listener, for as long as the socket lives, which reserves the port.
pub(crate) fn nobody() -> (TcpSocket, String) {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let url = format!("http://{}/done", socket.local_addr().unwrap());
    (socket, url)
}
