//! One cell: a server, several calls in parallel, and their results.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use http_body::Body;
use http_body_util::BodyExt;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tower::{BoxError, ServiceExt};

use crate::fault_matrix::call::{ATTEMPT_TIMEOUT, Answer, Call, client};
use crate::fault_matrix::cell::{Cell, Fault, Point, Version};
use crate::fault_matrix::exchange::{End, Exchange};
use crate::fault_matrix::expected::objection;
use crate::fault_matrix::{http1, http2};

/// Runs a cell, and returns the differences from its expectation.
pub(crate) fn run(cell: Cell) -> Result<(), String> {
    let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
    let (release, released) = std::sync::mpsc::channel::<()>();
    // A paused clock moves by itself while there is nothing to do, unless a blocking task is running.
    runtime.spawn_blocking(move || released.recv());
    let ended = runtime.block_on(calls(cell));
    drop(release);
    ended
}

async fn calls(cell: Cell) -> Result<(), String> {
    let exchange = Exchange::new(cell);
    let server = start(&exchange);
    let client = client(&exchange);
    let mut calls = JoinSet::new();
    for number in 0..cell.calls {
        let call = Call { number, server, exchange: Arc::clone(&exchange) };
        let (client, exchange) = (client.clone(), Arc::clone(&exchange));
        calls.spawn(async move {
            let end = match client.oneshot(call).await {
                Ok(answer) => {
                    exchange.received_head();
                    read(answer, &exchange).await
                }
                Err(error) => End::Failed(format!("{error:?}")),
            };
            exchange.over();
            (number, end)
        });
    }
    let time = async {
        loop {
            exchange.stuck().await;
            tokio::time::advance(ATTEMPT_TIMEOUT).await;
        }
    };
    let ends = tokio::select! {
        ends = calls.join_all() => ends,
        () = time => return Err("time has ended".to_owned()),
    };
    let mut objections = ends.into_iter().filter_map(|(number, end)| {
        let (read, observed) = exchange.observed(number, end);
        objection(&cell, read, &observed).map(|objection| format!("call {number}: {objection}"))
    });
    match objections.next() {
        Some(first) => Err(format!("{first}, and {} more", objections.count())),
        None => Ok(()),
    }
}

/// Reads a body to its end, or until it stalls.
async fn read(answer: Answer, exchange: &Exchange) -> End {
    let mut body = answer.into_body();
    let mut data = Vec::new();
    while data.len() < 4 {
        match body.frame().await {
            Some(Ok(frame)) => data.extend(frame.into_data().unwrap()),
            Some(Err(_)) => return End::Broken,
            None => return End::Failed("a body without data".to_owned()),
        }
    }
    if data == b"half" && exchange.cell.fault == Fault::Stall {
        let polled = poll_fn(|cx| Poll::Ready(Pin::new(&mut body).poll_frame(cx).is_pending()));
        return if polled.await { End::Stalled } else { End::Broken };
    }
    match body.collect().await {
        Ok(_) if data == b"done" => End::Served,
        Ok(_) => End::Failed("half a body was taken for a whole one".to_owned()),
        Err::<_, BoxError>(_) => End::Broken,
    }
}

/// Starts the server on a port that stays bound while it is down.
fn start(exchange: &Arc<Exchange>) -> SocketAddr {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = socket.local_addr().unwrap();
    let exchange = Arc::clone(exchange);
    if exchange.is_down() {
        tokio::spawn(async move {
            exchange.comes_up().await;
            let listener = socket.listen(64).unwrap();
            exchange.is_up();
            accept(listener, exchange).await;
        });
    } else {
        tokio::spawn(accept(socket.listen(64).unwrap(), exchange));
    }
    address
}

async fn accept(listener: TcpListener, exchange: Arc<Exchange>) {
    loop {
        let (connection, _) = listener.accept().await.unwrap();
        connection.set_nodelay(true).unwrap();
        tokio::spawn(serve(connection, Arc::clone(&exchange)));
    }
}

async fn serve(connection: TcpStream, exchange: Arc<Exchange>) {
    if exchange.fails_at(Point::Refused) {
        return exchange.fail(connection).await;
    }
    // The client may leave in any way.
    let _ = match exchange.cell.version {
        Version::Http1 => http1::serve(connection, exchange).await,
        Version::Http2 => http2::serve(connection, exchange).await,
    };
}
