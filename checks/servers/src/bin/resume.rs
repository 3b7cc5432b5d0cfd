//! Downloads from real servers through connections that break at random bytes, and a file that is replaced half-way.
//!
//! The script `nginx` starts nginx, which serves a folder over HTTP/1.1 and HTTP/2, each with and without TLS. The
//! script `files` starts other file servers.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write as _;
use std::net::SocketAddr;
use std::ops::Range;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Request;
use http::header::RANGE;
use http_body_util::{BodyExt, Empty};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use reattempt::report::ReportSlot;
use reattempt::resume::ResumeLayer;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, RetryBudget};
use reattempt_faults::{Break, Faults, Relay, Script, Step, Tls, WireFault};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};
use tokio::time::timeout;
use tower::{BoxError, Layer, ServiceExt};

/// The length of the file at the servers that the script `files` starts.
const SMALL: usize = 20_000_000;

/// The breaks of a whole download if no byte is lost. A reset discards what the client has not read, so there are more.
const BREAKS: usize = 100;

/// The most memory in use at once that a download may add. Sockets and frames have buffers of 64 KiB to 1 MiB.
const MEMORY: usize = 4 * 1024 * 1024;

/// The time for 100 MB.
const HANGS: Duration = Duration::from_secs(60);

/// The bytes in use now, and the most since the last reset.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

struct Counting;

#[global_allocator]
static COUNTING: Counting = Counting;

#[expect(unsafe_code, reason = "an allocator is unsafe by its trait; it only counts and forwards")]
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        MOST.fetch_max(now, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// A version of the file. No version has the byte of another at any position.
#[derive(Clone, Copy)]
struct Version {
    number: u8,
    length: usize,
    /// The age of the file in seconds. A server's tag consists of the time in seconds and the length, or there is none.
    age: u64,
}

impl Version {
    /// Returns the first version.
    fn first(length: usize) -> Self {
        Self { number: 1, length, age: 1000 }
    }

    /// Returns the version that replaces it, of another second.
    fn newer(self) -> Self {
        Self { number: self.number + 1, age: self.age - 100, ..self }
    }

    /// Returns the version that replaces it, of the same second and another length.
    fn longer(self) -> Self {
        Self { number: self.number + 1, length: self.length + 1000, ..self }
    }

    fn byte(self, at: usize) -> u8 {
        // A multiple of no power of two, so that a shifted part differs.
        (at % 83).to_le_bytes()[0] * 3 + self.number
    }

    /// Replaces the file by this version, as a deployment does: a new file under the same name.
    fn write(self, folder: &Path, now: SystemTime) -> std::io::Result<()> {
        let next = folder.join("next");
        let mut file = std::io::BufWriter::new(std::fs::File::create(&next)?);
        let block: Vec<u8> = (0..83 * 1024).map(|at| self.byte(at)).collect();
        let mut left = self.length;
        while left > 0 {
            let part = left.min(block.len());
            file.write_all(&block[..part])?;
            left -= part;
        }
        let file = file.into_inner().map_err(std::io::IntoInnerError::into_error)?;
        file.set_modified(now - Duration::from_secs(self.age))?;
        std::fs::rename(next, folder.join("film"))
    }
}

/// A way to reach a server.
struct Listener<'a> {
    address: SocketAddr,
    http2: bool,
    /// The certificate that the client trusts; `None` without TLS.
    certificate: Option<&'a Path>,
}

impl Listener<'_> {
    fn name(&self) -> String {
        let protocol = if self.http2 { "HTTP/2" } else { "HTTP/1.1" };
        protocol.to_owned() + if self.certificate.is_some() { ", TLS" } else { "" }
    }

    /// Returns the configuration of a client that trusts the certificate alone.
    fn trusting(&self) -> Result<ClientConfig, BoxError> {
        let mut roots = RootCertStore::empty();
        if let Some(certificate) = self.certificate {
            roots.add(CertificateDer::from_pem_file(certificate)?)?;
        }
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
        Ok(config.with_safe_default_protocol_versions()?.with_root_certificates(roots).with_no_client_auth())
    }
}

/// The outcome of a download whose bytes were all of one version.
struct Outcome {
    bytes: usize,
    error: Option<String>,
    resumes: u32,
    memory: usize,
}

/// Downloads the range, or the whole file, and compares each byte with `version`. `half_way` is called in the middle.
async fn download(
    relay: &Relay,
    server: &Listener<'_>,
    version: Version,
    range: Option<Range<usize>>,
    half_way: impl FnOnce() -> std::io::Result<()>,
) -> Result<Outcome, BoxError> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    let connector = HttpsConnectorBuilder::new().with_tls_config(server.trusting()?).https_or_http();
    let connector = match server.http2 {
        true => connector.enable_http2().wrap_connector(tcp),
        false => connector.enable_http1().wrap_connector(tcp),
    };
    let client = Client::builder(TokioExecutor::new()).http2_only(server.http2).build(connector);
    let scheme = if server.certificate.is_some() { "https" } else { "http" };
    let layer = ResumeLayer::http().backoff(Constant::immediate()).budget(RetryBudget::unlimited());
    let slot = ReportSlot::default();
    let mut request = Request::get(format!("{scheme}://{}/film", relay.address()));
    if let Some(range) = &range {
        request = request.header(RANGE, format!("bytes={}-{}", range.start, range.end - 1));
    }
    let range = range.unwrap_or(0..version.length);
    let request = request.extension(CallOptions::new().report_to(&slot)).body(Empty::<Bytes>::new())?;
    let before = IN_USE.load(Ordering::Relaxed);
    MOST.store(before, Ordering::Relaxed);
    let mut body = layer.layer(client).oneshot(request).await?.into_body();
    let (mut bytes, mut error, mut half_way) = (0, None, Some(half_way));
    while let Some(frame) = body.frame().await {
        let data = match frame {
            Ok(frame) => frame.into_data().unwrap_or_default(),
            Err(broke) => {
                error = Some(broke.to_string());
                break;
            }
        };
        let at = range.start + bytes;
        if let Some(wrong) = data.iter().enumerate().find(|(past, found)| **found != version.byte(at + past)) {
            return Err(format!("byte {} is not of version {}", at + wrong.0, version.number).into());
        }
        bytes += data.len();
        if bytes >= range.len() / 2
            && let Some(half_way) = half_way.take()
        {
            half_way()?;
        }
    }
    let memory = MOST.load(Ordering::Relaxed).saturating_sub(before);
    let resumes = slot.take().map_or(0, |report| report.retries());
    Ok(Outcome { bytes, error, resumes, memory })
}

/// Returns a relay to a server whose connections are reset or closed after random bytes; the mean is a hundredth of the
/// length.
async fn relay(server: SocketAddr, length: usize, seed: u64) -> Result<(Faults<WireFault>, Relay), BoxError> {
    let mut random = SmallRng::seed_from_u64(seed);
    let steps = (0..4 * BREAKS).map(|_| {
        let after = random.random_range(1..2 * length / BREAKS - length / 2000);
        let how = if random.random() { Break::Reset } else { Break::Close };
        Step::new(WireFault::read(u64::try_from(after).unwrap_or(1), how))
    });
    let faults = Faults::new(Script::new(steps).may_remain());
    let relay = faults.relay(server).await?;
    Ok((faults, relay))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, BoxError> {
    let usage = "usage: reattempt-resume-check certificate FOLDER | files NAME FOLDER SEED PORT | FOLDER SEED LENGTH \
                 PORT_OF_HTTP1 PORT_OF_HTTP2 PORT_OF_HTTP1_TLS PORT_OF_HTTP2_TLS";
    let arguments = std::env::args().skip(1).collect::<Vec<_>>();
    match &arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["certificate", folder] => certify(Path::new(folder)).map(|()| ExitCode::SUCCESS),
        ["files", name, folder, seed, port] => files(name, Path::new(folder), seed.parse()?, port.parse()?).await,
        [folder, seed, length, ports @ ..] if ports.len() == 4 => {
            check(Path::new(folder), seed.parse()?, length.parse()?, ports).await
        }
        _ => Err(usage.into()),
    }
}

/// Writes a new certificate and its key.
fn certify(folder: &Path) -> Result<(), BoxError> {
    let tls = Tls::new()?;
    std::fs::write(folder.join("certificate.pem"), tls.certificate_pem())?;
    std::fs::write(folder.join("key.pem"), tls.private_key_pem())?;
    Ok(())
}

async fn check(folder: &Path, seed: u64, length: usize, ports: &[&str]) -> Result<ExitCode, BoxError> {
    let (files, certificate) = (folder.join("www"), folder.join("certificate.pem"));
    let ways = [(false, None), (true, None), (false, Some(&*certificate)), (true, Some(&*certificate))];
    let mut holds = true;
    for ((http2, certificate), port) in ways.into_iter().zip(ports) {
        let address = SocketAddr::from(([127, 0, 0, 1], port.parse()?));
        let nginx = Listener { address, http2, certificate };
        let mut cases = Cases { name: nginx.name(), server: &nginx, folder: &files, seed, length, holds: true };
        cases.whole(None).await?;
        cases.replaced("another second", Version::newer).await?;
        holds &= cases.holds;
    }
    Ok(verdict(holds, seed))
}

async fn files(name: &str, folder: &Path, seed: u64, port: u16) -> Result<ExitCode, BoxError> {
    let server = Listener { address: SocketAddr::from(([127, 0, 0, 1], port)), http2: false, certificate: None };
    let mut cases = Cases { name: name.to_owned(), server: &server, folder, seed, length: SMALL, holds: true };
    cases.whole(None).await?;
    cases.whole(Some(SMALL / 5..SMALL / 2)).await?;
    cases.replaced("another second", Version::newer).await?;
    cases.replaced("another length", Version::longer).await?;
    Ok(verdict(cases.holds, seed))
}

fn verdict(holds: bool, seed: u64) -> ExitCode {
    println!("{} (seed {seed})", if holds { "all of it holds" } else { "not all of it holds" });
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The downloads from one server.
struct Cases<'a> {
    name: String,
    server: &'a Listener<'a>,
    folder: &'a Path,
    seed: u64,
    length: usize,
    /// `true` until an outcome is not the expected one.
    holds: bool,
}

impl Cases<'_> {
    /// A file that stays as it is.
    async fn whole(&mut self, range: Option<Range<usize>>) -> Result<(), BoxError> {
        let version = Version::first(self.length);
        version.write(self.folder, SystemTime::now())?;
        let (asked, least) = range.as_ref().map_or((self.length, 50), |range| (range.len(), 10));
        let (_faults, broken) = relay(self.server.address, self.length, self.seed).await?;
        let outcome = timeout(self.hangs(), download(&broken, self.server, version, range, || Ok(()))).await??;
        let Outcome { bytes, error, resumes, memory } = outcome;
        let name = &self.name;
        println!("{name:<13} {bytes:>10} bytes after {resumes:>3} resumes, {memory:>7} bytes of memory");
        self.holds &= bytes == asked && error.is_none() && memory <= MEMORY && resumes > least;
        Ok(())
    }

    /// A file that is replaced half-way.
    async fn replaced(&mut self, by: &str, next: impl Fn(Version) -> Version) -> Result<(), BoxError> {
        let (version, now) = (Version::first(self.length), SystemTime::now());
        version.write(self.folder, now)?;
        let (_faults, broken) = relay(self.server.address, self.length, self.seed).await?;
        let replace = || next(version).write(self.folder, now);
        let outcome = timeout(self.hangs(), download(&broken, self.server, version, None, replace)).await??;
        let Outcome { bytes, error, resumes, .. } = outcome;
        println!("{:<13} {bytes:>10} bytes after {resumes:>3} resumes, replaced by {by}: {error:?}", self.name);
        self.holds &= (self.length / 2..self.length).contains(&bytes) && error.is_some();
        Ok(())
    }

    /// Reached only by a hanging download: a minute for each 100 MB.
    fn hangs(&self) -> Duration {
        HANGS * u32::try_from(self.length.div_ceil(100_000_000)).unwrap_or(u32::MAX)
    }
}
