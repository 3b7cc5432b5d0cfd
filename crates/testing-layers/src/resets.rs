//! Tests of streams that their server has reset.

use std::sync::Mutex;

use h2::Reason;
use http::Request;
use reattempt_faults::{End, Reply, Server};
use tokio::net::TcpStream;

use crate::grpc::{Lost, lost};

/// Errors of a client whose stream a server has reset, one per call until none is left. They come from a server,
/// because they cannot be created directly.
pub struct Resets(Mutex<Vec<h2::Error>>);

impl Resets {
    pub async fn new(reason: Reason, count: usize) -> Self {
        let mut errors = Vec::new();
        for _ in 0..count {
            errors.push(reset(reason).await);
        }
        Self(Mutex::new(errors))
    }

    pub fn next(&self) -> Lost {
        lost(self.0.lock().unwrap().pop().unwrap())
    }
}

async fn reset(reason: Reason) -> h2::Error {
    let reset = Reply::default().cut(0).end_with(End::ResetStream(reason.into()));
    let server = Server::http2([reset]).await.unwrap();
    let stream = TcpStream::connect(server.address()).await.unwrap();
    let (mut client, connection) = h2::client::handshake(stream).await.unwrap();
    let request = Request::get("http://one.example/").body(()).unwrap();
    let (answer, _) = client.send_request(request, true).unwrap();
    tokio::select! {
        answer = answer => answer.unwrap_err(),
        _ = connection => unreachable!("the connection lasts"),
    }
}
