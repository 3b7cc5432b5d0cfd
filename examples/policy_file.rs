//! Retry policies from a file, which is changed while the client runs: another policy, a mistake, the kill switch.
//!
//! `cargo run --example policy_file`

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::Router;
use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::Empty;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use reattempt::policies::PolicyClient;
use reattempt::{Http, ReplayBody};
use reattempt_policy_file::PolicyFileOptions;
use tokio::net::TcpListener;
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::time::timeout;
use tower::{BoxError, ServiceBuilder};

/// The application, which stores its client by type.
struct App {
    client: PolicyClient<Client<HttpConnector, ReplayBody<Empty<Bytes>>>, Http>,
    server: SocketAddr,
    attempts: Arc<AtomicU32>,
}

const FILE: &str = r#"
[default]
max_attempts = 2
base = "10ms"

[reports]
max_attempts = 4
base = "10ms"
budget = "none"

[[routes]]
path = "/reports/*"
policy = "reports"
"#;

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let path = std::env::temp_dir().join(format!("reattempt-example-{}.toml", std::process::id()));
    replace(&path, FILE)?;
    let (events, mut changes) = unbounded_channel();
    let policies = PolicyFileOptions::new().observe(move |event| drop(events.send(event.to_string()))).load(&path)?;

    let attempts = Arc::new(AtomicU32::new(0));
    let server = failing_server(Arc::clone(&attempts)).await?;
    let http = Client::builder(TokioExecutor::new()).build_http();
    let client = ServiceBuilder::new().layer(policies.layer()).service(http);
    let app = App { client, server, attempts };

    println!("The policies of {}:{FILE}", path.display());
    assert_eq!(app.attempts_for("orders").await?, 2);
    assert_eq!(app.attempts_for("reports/today").await?, 4);

    println!("\nAn operator changes the number of attempts:");
    replace(&path, &FILE.replace("max_attempts = 4", "max_attempts = 3"))?;
    change(&mut changes, &path).await?;
    assert_eq!(app.attempts_for("reports/today").await?, 3);

    println!("\nA mistake changes nothing:");
    replace(&path, &FILE.replace("max_attempts = 4", "max_atempts = 5\ncolour = \"red\""))?;
    change(&mut changes, &path).await?;
    assert_eq!(app.attempts_for("reports/today").await?, 3);

    println!("\nThe kill switch, in an outage:");
    replace(&path, &format!("never_retry = true\n{FILE}"))?;
    change(&mut changes, &path).await?;
    assert_eq!(app.attempts_for("reports/today").await?, 1);

    std::fs::remove_file(&path)?;
    Ok(())
}

/// Replaces the file in one step, so that no reader finds half of it.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let new = path.with_extension("new");
    std::fs::write(&new, text)?;
    std::fs::rename(&new, path)
}

/// Waits until the change of the file is in force, or refused.
async fn change(changes: &mut UnboundedReceiver<String>, path: &Path) -> Result<(), BoxError> {
    let event = timeout(Duration::from_secs(10), changes.recv()).await?.ok_or("the watch has ended")?;
    println!("  {}", event.replace(&path.display().to_string(), "policies.toml").replace('\n', "\n  "));
    Ok(())
}

impl App {
    /// Makes one call, which fails, and returns the number of its attempts.
    async fn attempts_for(&self, path: &str) -> Result<u32, BoxError> {
        let request = Request::get(format!("http://{}/{path}", self.server)).body(Empty::<Bytes>::new())?;
        let response = self.client.send(request).await?;
        let attempts = self.attempts.swap(0, Ordering::Relaxed);
        println!("  GET /{path}: {} after {attempts} attempts", response.status());
        Ok(attempts)
    }
}

/// Starts a server that fails, and counts its requests.
async fn failing_server(attempts: Arc<AtomicU32>) -> Result<SocketAddr, BoxError> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    let app = Router::new().fallback(move || {
        attempts.fetch_add(1, Ordering::Relaxed);
        std::future::ready(StatusCode::SERVICE_UNAVAILABLE)
    });
    tokio::spawn(async { axum::serve(listener, app).await });
    Ok(address)
}
