//! Scripted HTTP/1.1 servers, and an address without a listener.

use std::net::{Ipv4Addr, SocketAddr};

use http::StatusCode;
use http::header::LOCATION;
use reattempt_faults::{Faults, Relay, Reply, Script, Server, WireFault};

/// Starts a server that sends these replies, and repeats the last one.
pub async fn scripted<const N: usize>(replies: [Reply; N]) -> Server {
    let last = replies[N - 1].clone();
    Server::http1(Script::new(replies).otherwise(last).may_remain()).await.unwrap()
}

/// Returns the method and path of each request that arrived.
pub fn seen(server: &Server) -> Vec<String> {
    server.ledger().arrivals().iter().map(|arrival| format!("{} {}", arrival.method, arrival.target)).collect()
}

pub fn answer(status: u16) -> Reply {
    Reply::status(StatusCode::from_u16(status).unwrap())
}

pub fn see_other(location: &str) -> Reply {
    answer(303).header(LOCATION, location.parse().unwrap())
}

/// Returns an address without a listener, for as long as the relay lives, which reserves the port.
pub async fn nobody() -> (Relay, String) {
    let faults = Faults::<WireFault>::new(Script::default());
    let mut relay = faults.relay(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.unwrap();
    relay.close().await.unwrap();
    let url = format!("http://{}/done", relay.address());
    (relay, url)
}
