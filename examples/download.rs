//! A download command with a progress bar. It survives breaks of its connection, and `kill -9` of itself.
//!
//! `cargo run --example download URL FILE` downloads a file; run it again after it was killed. Without arguments, it
//! starts a server, and kills itself three times while it downloads from it.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use http::{HeaderMap, HeaderValue, Method};
use reattempt::resume::{Checkpoint, Continuation, ResumeLayer, ResumePoint};
use reattempt::{ReqwestExt, RetryBudget, RetryLayer, RetryPolicy};
use tower::{BoxError, ServiceBuilder};

/// Downloads to `FILE.part`, with the validator in `FILE.validator`, and renames the complete file.
async fn download(url: &str, file: &Path) -> Result<(), BoxError> {
    let beside = |ending: &str| PathBuf::from([file.as_os_str(), ending.as_ref()].into_iter().collect::<OsString>());
    let (part, stored) = (beside(".part"), beside(".validator"));
    let http = reqwest::Client::builder().retry(reqwest::retry::never()).build()?;
    let budget = RetryBudget::default();
    let client = ServiceBuilder::new()
        .layer(ResumeLayer::http().budget(budget.clone()))
        .layer(RetryLayer::new(RetryPolicy::http().budget(budget)))
        .service(http.clone());

    let checkpoint = match (fs::metadata(&part), fs::read(&stored)) {
        (Ok(part), Ok(validator)) => Some(Checkpoint::new(part.len(), HeaderValue::from_bytes(&validator)?)?),
        _ => None,
    };
    let mut headers = HeaderMap::new();
    if let Some(checkpoint) = &checkpoint {
        checkpoint.write_to(&mut headers);
    }
    let mut response = http.get(url).headers(headers.clone()).send_with(&client).await?;
    let (status, head) = (response.status(), response.headers());
    let found = match checkpoint {
        Some(checkpoint) => checkpoint.check(status, head)?,
        None => {
            response.error_for_status_ref()?;
            Continuation::Whole { changed: true }
        }
    };
    let (mut output, mut received, total) = match found {
        Continuation::Complete => return finish(&part, &stored, file),
        Continuation::Rest(point) => (File::options().append(true).open(&part)?, point.position(), point.total()),
        _ => {
            // Truncated before the new validator is stored, so that two versions are never joined.
            let output = File::create(&part)?;
            match ResumePoint::new(&Method::GET, &headers, status, head) {
                Some(point) => fs::write(&stored, point.validator())?,
                None if stored.exists() => fs::remove_file(&stored)?,
                None => {}
            }
            (output, 0, response.content_length())
        }
    };
    while let Some(data) = response.chunk().await? {
        output.write_all(&data)?;
        received += data.len() as u64;
        progress(received, total);
    }
    match total.filter(|&total| received < total) {
        Some(total) => Err(format!("{received} of {total} bytes; run it again for the rest").into()),
        None => finish(&part, &stored, file),
    }
}

fn progress(received: u64, total: Option<u64>) {
    let percent = total.map_or(0, |total| received.saturating_mul(100) / total.max(1));
    let done = "#".repeat(usize::try_from(percent / 2).unwrap_or_default());
    eprint!("\r[{done:<50}] {percent:>3} % {received} bytes");
}

fn finish(part: &Path, stored: &Path, file: &Path) -> Result<(), BoxError> {
    eprintln!();
    fs::rename(part, file)?;
    // A server without a validator leaves none.
    fs::remove_file(stored).or_else(|error| if stored.exists() { Err(error) } else { Ok(()) })?;
    Ok(())
}

/// A server whose file comes slowly, and this command, which is killed three times.
mod demonstration {
    use std::process::Command;
    use std::time::Duration;

    use axum::Router;
    use axum::body::Body;
    use axum::response::Response;
    use axum::routing::get;
    use bytes::Bytes;
    use futures_util::stream;
    use http::StatusCode;
    use tokio::net::TcpListener;
    use tokio::time::sleep;

    use super::{BoxError, HeaderMap, fs};

    const LENGTH: usize = 2_000_000;

    fn content() -> Vec<u8> {
        (0..LENGTH).map(|at| (at % 251).to_le_bytes()[0]).collect()
    }

    /// Sends the file from the byte in `Range` on, in pieces of 20 kB each 10 ms.
    async fn serve(headers: HeaderMap) -> Result<Response, StatusCode> {
        let range = headers.get("range").and_then(|range| range.to_str().ok()?.strip_prefix("bytes=")?.split_once('-'));
        let first = range.and_then(|(first, _)| first.parse().ok()).unwrap_or(0);
        let rest = content().get(first..).map(Bytes::copy_from_slice).ok_or(StatusCode::RANGE_NOT_SATISFIABLE)?;
        let response = Response::builder().header("etag", "\"1\"").header("content-length", rest.len());
        let response = match range {
            Some(_) => response.status(206).header("content-range", format!("bytes {first}-{}/{LENGTH}", LENGTH - 1)),
            None => response,
        };
        let pieces = stream::unfold(rest, |mut rest| async move {
            sleep(Duration::from_millis(10)).await;
            (!rest.is_empty()).then(|| (Ok::<_, BoxError>(rest.split_to(rest.len().min(20_000))), rest))
        });
        response.body(Body::from_stream(pieces)).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(super) async fn run() -> Result<(), BoxError> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/film", listener.local_addr()?);
        tokio::spawn(async { axum::serve(listener, Router::new().route("/film", get(serve))).await });
        let folder = std::env::temp_dir().join(format!("download-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let (file, part) = (folder.join("film"), folder.join("film.part"));
        let command = || Command::new(std::env::current_exe()?).arg(&url).arg(&file).spawn();
        for kilobytes in [300, 800, 1300] {
            let mut running = command()?;
            let received = || fs::metadata(&part).map_or(0, |part| part.len());
            while received() < kilobytes * 1000 && running.try_wait()?.is_none() {
                sleep(Duration::from_millis(5)).await;
            }
            // SIGKILL on Unix.
            running.kill()?;
            running.wait()?;
            eprintln!("\nkilled");
        }
        let mut last = command()?;
        while last.try_wait()?.is_none() {
            sleep(Duration::from_millis(5)).await;
        }
        let whole = fs::read(&file)? == content();
        fs::remove_dir_all(&folder)?;
        println!("{LENGTH} bytes after three kills: {}", if whole { "no byte is wrong" } else { "wrong" });
        if whole { Ok(()) } else { Err("the file differs".into()) }
    }
}

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let mut arguments = std::env::args().skip(1);
    match (arguments.next(), arguments.next()) {
        (Some(url), Some(file)) => download(&url, Path::new(&file)).await,
        _ => demonstration::run().await,
    }
}
