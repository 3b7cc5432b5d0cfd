//! Uploads of a file that survive a broken connection and a busy server, and one whose file changes meanwhile.
//!
//! `cargo run --example upload URL FILE` sends a file with PUT. Without arguments, it starts a server that fails, and
//! sends 5 MB to it.

use std::env;
use std::fs;
use std::path::Path;

use http::{Request, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::body::UploadBody;
use reattempt::report::ReportSlot;
use reattempt::{CallOptions, ReplayBody, RetryLayer};
use reattempt_faults::{End, Read, Reply, Server};
use tower::{BoxError, Layer};

/// Sends the file, and prints what happened.
async fn upload(url: &str, file: &Path) -> Result<StatusCode, BoxError> {
    let http = Client::builder(TokioExecutor::new()).build_http::<ReplayBody<UploadBody>>();
    let client = RetryLayer::http().layer(http);
    let body = UploadBody::file(file).await?;
    let slot = ReportSlot::default();
    let request = Request::put(url).extension(CallOptions::new().report_to(&slot)).body(body)?;
    let outcome = client.send(request).await;
    if let Some(report) = slot.take() {
        println!("{report}");
    }
    Ok(outcome?.status())
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    if let [_, url, file] = &env::args().collect::<Vec<_>>()[..] {
        println!("{}", upload(url, Path::new(file)).await?);
        return Ok(());
    }
    let file = env::temp_dir().join(format!("reattempt-upload-{}", std::process::id()));
    let content: Vec<_> = (0..5_000_000_u32).map(|at| (at % 251) as u8).collect();
    fs::write(&file, &content)?;

    // The server resets the connection after 2 MB, is busy, and then takes the file.
    let broken = Reply::reset().read(Read::Body(2_000_000));
    let busy = Reply::status(StatusCode::SERVICE_UNAVAILABLE);
    let server = Server::http1(vec![broken, busy, Reply::default()]).await?;
    assert_eq!(upload(&server.url("/file"), &file).await?, 200);
    let arrivals = server.ledger().arrivals();
    assert!(arrivals.len() == 3 && arrivals[1].body == content && arrivals[2].body == content);

    // The server is busy, and the file has changed when it would be sent again.
    let busy = Reply::status(StatusCode::SERVICE_UNAVAILABLE).read(Read::Body(1)).end_with(End::Close);
    let server = Server::http1([busy]).await?;
    let changing = {
        let (ledger, file) = (server.ledger().clone(), file.clone());
        async move {
            ledger.until(|arrivals| !arrivals.is_empty()).await;
            fs::write(&file, "shorter")
        }
    };
    let url = server.url("/file");
    let (sent, changed) = tokio::join!(upload(&url, &file), changing);
    changed?;
    // Either the change was seen before the retry, or it broke the first attempt.
    println!("{sent:?}");
    assert!(
        server.ledger().arrivals().iter().all(|arrival| !arrival.whole),
        "nothing of the changed file was completed"
    );
    fs::remove_file(&file)?;
    Ok(())
}
