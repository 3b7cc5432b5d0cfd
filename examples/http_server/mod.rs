//! One of the five servers, over plain HTTP.

use axum::Router;
use http::StatusCode;
use tokio::net::TcpListener;

use super::five_servers::Turns;

pub(crate) fn serve(listener: TcpListener, turns: Turns) {
    let app = Router::new().fallback(
        async move || {
            if turns.take().await { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
        },
    );
    tokio::spawn(async { axum::serve(listener, app).await });
}
