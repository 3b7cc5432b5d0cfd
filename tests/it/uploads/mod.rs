//! Bodies that are opened again, over real connections: each point of an upload, early answers, redirects, and each
//! client.

mod answers;
mod clients;
mod every_point;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use http::Request;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use reattempt::ReplayBody;
use reattempt::body::UploadBody;
use reattempt_faults::{Arrival, Tls};
use rustls::{ClientConfig, RootCertStore};

/// A file of pseudo-random bytes, which is removed when the test ends.
struct TestFile {
    path: PathBuf,
    content: Vec<u8>,
}

impl TestFile {
    fn new(length: usize) -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("reattempt-uploads-{}-{number}", std::process::id()));
        let content: Vec<_> = (0..length).map(|at| (at.wrapping_mul(2_654_435_761) >> 7).to_le_bytes()[0]).collect();
        std::fs::write(&path, &content).unwrap();
        Self { path, content }
    }

    async fn upload(&self) -> UploadBody {
        UploadBody::file(&self.path).await.unwrap()
    }

    /// Asserts that this many requests arrived, of which the last is whole, and that all bytes are the file's.
    #[track_caller]
    fn assert_arrived(&self, arrivals: &[Arrival], number: usize) {
        assert_eq!(arrivals.len(), number);
        for arrival in arrivals {
            assert!(self.content.starts_with(&arrival.body), "other bytes");
            assert_eq!(arrival.whole, arrival.body.len() == self.content.len());
            let length = arrival.headers["content-length"].to_str().unwrap().parse();
            assert_eq!(length, Ok(self.content.len()));
        }
        assert!(arrivals.last().is_some_and(|last| last.whole), "the last is not whole");
    }
}

impl Drop for TestFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

type Uploading = ReplayBody<UploadBody>;

fn plain(http2: bool) -> Client<HttpConnector, Uploading> {
    let mut connector = HttpConnector::new();
    // Otherwise each window of HTTP/2 ends with a wait for the delayed acknowledgement of a short segment.
    connector.set_nodelay(true);
    Client::builder(TokioExecutor::new()).http2_only(http2).build(connector)
}

/// Returns a client that trusts the certificate.
fn secure(tls: &Tls, http2: bool) -> Client<HttpsConnector<HttpConnector>, Uploading> {
    let mut roots = RootCertStore::empty();
    roots.add(tls.certificate_der().to_vec().into()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let mut connector = HttpConnector::new();
    connector.enforce_http(false);
    connector.set_nodelay(true);
    let https = HttpsConnectorBuilder::new().with_tls_config(config).https_only();
    let https = match http2 {
        true => https.enable_http2().wrap_connector(connector),
        false => https.enable_http1().wrap_connector(connector),
    };
    Client::builder(TokioExecutor::new()).http2_only(http2).build(https)
}

fn request<B>(method: &str, url: &str, body: B) -> Request<B> {
    Request::builder().method(method).uri(url).body(body).unwrap()
}
