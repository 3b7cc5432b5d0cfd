//! The cost of the dependency: crates, CPU seconds of a cold build, bytes of a stripped program, of one with fat LTO,
//! and of a further client type.
//!
//! Small programs are built with the library and without it, in a temporary directory, with the
//! versions of the workspace's lock file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::goals::Figure;
use crate::measure::{Error, Figures, run};

/// A program with the library, and one that does the same without it.
struct Pair {
    row: &'static str,
    /// The dependencies of both.
    below: &'static str,
    ours: &'static str,
    /// The source, with a place for the code that differs.
    main: &'static str,
    with: &'static str,
    without: &'static str,
    /// The code of a further client type, if that is measured. It has the same place.
    further: Option<&'static str>,
}

const GET: &str = r#"
#![allow(unused_imports)]
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use tower::{Layer, Service, ServiceExt};
IMPORT

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let uri = std::env::args().nth(1).unwrap();
    let status = runtime.block_on(async {
        let client = HERE;
        let request = Request::get(&uri).body(Full::<Bytes>::default()).unwrap();
        client.oneshot(request).await.map(|response| response.status())
    });
    println!("{status:?}");
    FURTHER
}
"#;

/// A call through a further client, whose type differs in the body.
const FURTHER: &str = r#"
    let status = runtime.block_on(async {
        let client = HERE;
        let request = Request::get(&uri).body(http_body_util::Empty::<Bytes>::new()).unwrap();
        client.oneshot(request).await.map(|response| response.status())
    });
    println!("{status:?}");
"#;

const OPERATION: &str = r#"
#[allow(dead_code)]
const BASE: std::time::Duration = std::time::Duration::from_millis(100);

async fn read() -> std::io::Result<Vec<u8>> {
    std::fs::read("small")
}

fn main() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    println!("{:?}", runtime.block_on(async { HERE }).map(|bytes| bytes.len()));
}
"#;

const PAIRS: &[Pair] = &[
    Pair {
        row: "build",
        below: r#"
bytes = "1"
http = "1"
http-body-util = "0.1"
hyper-util = { version = "0.1", default-features = false, features = ["client-legacy", "http1", "http2", "tokio"] }
tokio = { version = "1", default-features = false, features = ["rt", "time", "net"] }
tower = { version = "0.5", default-features = false, features = ["util"] }
"#,
        ours: r#"reattempt = { path = "REATTEMPT" }"#,
        main: GET,
        with: "RetryLayer::http().layer(Client::builder(TokioExecutor::new()).build_http())",
        without: "Client::builder(TokioExecutor::new()).build_http()",
        further: Some(FURTHER),
    },
    Pair {
        row: "build-retry",
        below: r#"tokio = { version = "1", default-features = false, features = ["rt", "time"] }"#,
        ours: r#"reattempt = { path = "REATTEMPT", default-features = false }"#,
        main: OPERATION,
        with: "reattempt::retry(reattempt::schedule::Exponential::full_jitter(BASE), read).await",
        without: "read().await",
        further: None,
    },
];

/// Builds each pair and adds both figures to the row; the program without the library is the bare
/// contender.
pub(crate) fn measure(figures: &mut Figures, wanted: &dyn Fn(&str) -> bool) -> Result<(), Error> {
    let directory = std::env::temp_dir().join(format!("reattempt-build-{}", std::process::id()));
    for pair in PAIRS.iter().filter(|pair| wanted(pair.row)) {
        let with = format!("{}\n{}", pair.below, pair.ours);
        let sides = [("bare", None, pair.below, pair.without), ("ours", Some("bare"), with.as_str(), pair.with)];
        for (contender, bare, dependencies, code) in sides {
            let place = directory.join(pair.row).join(contender);
            let import = if bare.is_some() { "use reattempt::RetryLayer;" } else { "" };
            let main = |further| pair.main.replace("IMPORT", import).replace("FURTHER", further).replace("HERE", code);
            write(&place, dependencies, &main(""))?;
            let seconds = build(&place, "release")?;
            let size = stripped(&place, "release")?;
            let mut values =
                vec![(Figure::Crates, crates(&place)?), (Figure::CpuSeconds, seconds), (Figure::Stripped, size)];
            if let Some(further) = pair.further {
                build(&place, "fat")?;
                values.push((Figure::StrippedFat, stripped(&place, "fat")?));
                write(&place, dependencies, &main(further))?;
                build(&place, "release")?;
                values.push((Figure::Further, stripped(&place, "release")? - size));
            }
            figures.put(pair.row, contender, bare, &values);
        }
    }
    // A directory that cannot be removed stays in the system's temporary place.
    let _ = fs::remove_dir_all(directory);
    Ok(())
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::new(format!("{}: {error}", path.display()))
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn write(place: &Path, dependencies: &str, main: &str) -> Result<(), Error> {
    let ours = workspace().join("crates/reattempt");
    let dependencies = dependencies.replace("REATTEMPT", &ours.to_string_lossy());
    let manifest = format!(
        "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2024\"\n\n[workspace]\n\n\
         [profile.release]\nstrip = true\n\n[profile.fat]\ninherits = \"release\"\nlto = \"fat\"\ncodegen-units = 1\n\
         panic = \"abort\"\n\n[dependencies]\n{dependencies}\n"
    );
    let source = place.join("src");
    fs::create_dir_all(&source).map_err(failed(&source))?;
    for (path, text) in [(place.join("Cargo.toml"), &*manifest), (source.join("main.rs"), main)] {
        fs::write(&path, text).map_err(failed(&path))?;
    }
    let lock = place.join("Cargo.lock");
    fs::copy(workspace().join("Cargo.lock"), &lock).map_err(failed(&lock))?;
    Ok(())
}

fn cargo(place: &Path) -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(place).env("CARGO_TARGET_DIR", place.join("target"));
    cargo
}

/// Returns the number of crates compiled into the program, without its own.
fn crates(place: &Path) -> Result<f64, Error> {
    let tree = cargo(place).args(["tree", "-e", "normal", "--prefix", "none"]).output();
    let tree = tree.map_err(failed(place))?;
    let text = String::from_utf8_lossy(&tree.stdout);
    let names: std::collections::HashSet<&str> =
        text.lines().filter_map(|line| line.split(" (").next()).filter(|name| !name.is_empty()).collect();
    Ok(names.len().saturating_sub(1) as f64)
}

/// Returns the size of the program that was built with this profile.
fn stripped(place: &Path, profile: &str) -> Result<f64, Error> {
    let program = place.join("target").join(profile).join("small");
    Ok(fs::metadata(&program).map_err(failed(&program))?.len() as f64)
}

/// Builds with this profile; returns the CPU seconds of all processes.
fn build(place: &Path, profile: &str) -> Result<f64, Error> {
    let cargo = cargo(place);
    let program = cargo.get_program().to_string_lossy().into_owned();
    let timed = format!("TIMEFORMAT='%U %S'; time '{program}' build --profile {profile} --quiet");
    let mut shell = Command::new("bash");
    shell.args(["-c", &timed]).env("CARGO_TARGET_DIR", place.join("target"));
    let (_, times) = run(shell.current_dir(place))?;
    let last = times.lines().last().unwrap_or_default();
    let seconds: Result<Vec<f64>, _> = last.split(' ').map(str::parse).collect();
    match seconds {
        Ok(parts) if parts.len() == 2 => Ok(parts.iter().sum()),
        _ => Err(Error::new(format!("no times in {times:?}"))),
    }
}
