//! A flaky server for the examples.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::Router;
use bytes::Bytes;
use http::StatusCode;
use tokio::net::TcpListener;
use tower::BoxError;

/// Starts a server that responds with these codes in turn, and echoes the body.
pub(crate) async fn flaky_server(script: &'static [u16]) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let arrived = Arc::new(AtomicUsize::new(0));
    let answer = move |body: Bytes| {
        let code = script.get(arrived.fetch_add(1, Ordering::Relaxed)).copied().unwrap_or(200);
        async move { (StatusCode::from_u16(code).unwrap_or_default(), body) }
    };
    tokio::spawn(axum::serve(listener, Router::new().fallback(answer)).into_future());
    Ok(address)
}
