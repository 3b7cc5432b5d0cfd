//! Tests of streams that their server has reset.

use std::sync::Mutex;

use h2::Reason;
use http::Request;

use crate::grpc::support::{Lost, lost};

/// Errors of a client whose stream a server has reset, one per call until none is left. They come from a server on h2,
/// because they cannot be created directly.
pub(crate) struct Resets(Mutex<Vec<h2::Error>>);

impl Resets {
    pub(crate) async fn new(reason: Reason, count: usize) -> Self {
        let mut errors = Vec::new();
        for _ in 0..count {
            errors.push(reset(reason).await);
        }
        Self(Mutex::new(errors))
    }

    pub(crate) fn next(&self) -> Lost {
        lost(self.0.lock().unwrap().pop().unwrap())
    }
}

async fn reset(reason: Reason) -> h2::Error {
    let (client, server) = tokio::io::duplex(4096);
    let server = async {
        let mut connection = h2::server::handshake(server).await.unwrap();
        let (_, mut respond) = connection.accept().await.unwrap().unwrap();
        respond.send_reset(reason);
        // Nothing else arrives, and meanwhile the reset is sent.
        connection.accept().await.map(drop)
    };
    let client = async {
        let (mut client, connection) = h2::client::handshake(client).await.unwrap();
        let request = Request::get("http://one.example/").body(()).unwrap();
        let (answer, _) = client.send_request(request, true).unwrap();
        tokio::select! {
            answer = answer => answer.unwrap_err(),
            _ = connection => unreachable!("the connection lasts"),
        }
    };
    tokio::select! {
        error = client => error,
        _ = server => unreachable!("the server waits on"),
    }
}
