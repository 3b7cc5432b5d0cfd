//! Tests of stores behind TLS, with a certificate authority of their own.
//!
//! A process reads the certificates of its system once, or those that `SSL_CERT_FILE` names. So each test runs its
//! client in a process of its own: the ignored test below.

#![cfg(feature = "tls")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use reattempt_redis::RedisStore;
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use crate::server::Server;
use crate::support::{logged_by, retry};

const BOUND: Duration = Duration::from_secs(30);

/// A folder with an authority's certificate, and with one that it gave to a server.
struct Certificates(PathBuf);

impl Certificates {
    fn new(test: &str, name: &str) -> Self {
        let folder = std::env::temp_dir().join(format!("reattempt-tls-{}-{test}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut of_authority = CertificateParams::new(Vec::new()).unwrap();
        of_authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key_of_authority = KeyPair::generate().unwrap();
        let authority = of_authority.self_signed(&key_of_authority).unwrap();
        let issuer = Issuer::new(of_authority, key_of_authority);
        let key = KeyPair::generate().unwrap();
        let own = CertificateParams::new(vec![name.to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        write(&folder.join("authority.pem"), "CERTIFICATE", authority.der());
        write(&folder.join("server.pem"), "CERTIFICATE", own.der());
        write(&folder.join("key.pem"), "PRIVATE KEY", key.serialized_der());
        Self(folder)
    }

    fn authority(&self) -> PathBuf {
        self.0.join("authority.pem")
    }

    /// The settings of a server that has this certificate.
    fn settings(&self) -> [(&'static str, String); 4] {
        let path = |name: &str| self.0.join(name).to_str().unwrap().to_owned();
        [
            ("tls-cert-file", path("server.pem")),
            ("tls-key-file", path("key.pem")),
            ("tls-ca-cert-file", path("authority.pem")),
            ("tls-auth-clients", "no".to_owned()),
        ]
    }

    async fn server(&self, more: &[&str]) -> Option<(Server, String)> {
        let mut arguments = Vec::new();
        for (name, value) in self.settings() {
            arguments.extend([format!("--{name}"), value]);
        }
        let arguments: Vec<_> = arguments.iter().map(String::as_str).chain(more.iter().copied()).collect();
        Server::with_tls(&arguments).await
    }
}

impl Drop for Certificates {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Writes a file in PEM.
fn write(path: &Path, label: &str, der: &[u8]) {
    let text = format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der));
    std::fs::write(path, text).unwrap();
}

/// Sends retries from a process that trusts the authority: until the store answers, if it can. Returns how many the
/// store granted, and the events.
async fn granted(kind: &str, address: &str, authority: &Path) -> (u64, String) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "tls::client_in_a_process_of_its_own", "--ignored", "--nocapture"]);
    child.env("SSL_CERT_FILE", authority).env("REATTEMPT_STORE", format!("{kind} rediss://{address}"));
    let output = timeout(BOUND, child.kill_on_drop(true).output()).await.unwrap().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}");
    let number = text.split("granted: ").nth(1).unwrap().split_whitespace().next().unwrap();
    (number.parse().unwrap(), text)
}

#[tokio::test]
#[ignore = "the other tests of this file run it"]
async fn client_in_a_process_of_its_own() {
    let Ok(store) = std::env::var("REATTEMPT_STORE") else { return };
    let (kind, url) = store.split_once(' ').unwrap();
    let store = match kind {
        "single" => RedisStore::new(url),
        #[cfg(feature = "cluster")]
        "cluster" => RedisStore::cluster(&[url]),
        #[cfg(feature = "sentinel")]
        "sentinel" => RedisStore::sentinel(&[url], "main"),
        other => panic!("{other}"),
    };
    let (budget, log) = logged_by(store.unwrap());
    // A busy machine may need more than one question for its handshakes.
    for _ in 0..5 {
        retry(&budget).await;
        if budget.stats().granted > 0 {
            break;
        }
        // A store that was late or failed is asked again after a second.
        sleep(Duration::from_millis(1100)).await;
    }
    println!("granted: {} {}", budget.stats().granted, log.lock().unwrap());
}

#[tokio::test]
async fn tls_store_is_asked() {
    let certificates = Certificates::new("single", "127.0.0.1");
    let Some((server, address)) = certificates.server(&["--requirepass", "s3cret"]).await else { return };
    let address = format!(":s3cret@{address}");
    let (number, text) = granted("single", &address, &certificates.authority()).await;
    assert!(number > 0, "{text}");
    assert!(!text.contains("s3cret"), "{text}");
    drop(server);
}

#[tokio::test]
async fn foreign_authority_leaves_alone() {
    let certificates = Certificates::new("foreign", "127.0.0.1");
    let other = Certificates::new("other", "127.0.0.1");
    let Some((_server, address)) = certificates.server(&[]).await else { return };
    let (number, text) = granted("single", &address, &other.authority()).await;
    assert_eq!(number, 0, "{text}");
    assert!(text.contains("TLS failed: the certificate is"), "{text}");
}

#[tokio::test]
async fn certificate_of_another_name_leaves_alone() {
    let certificates = Certificates::new("name", "other.example");
    let Some((_server, address)) = certificates.server(&[]).await else { return };
    let (number, text) = granted("single", &format!(":s3cret@{address}"), &certificates.authority()).await;
    assert_eq!(number, 0, "{text}");
    assert!(text.contains("TLS failed: the certificate is for another name"), "{text}");
    assert!(!text.contains("s3cret"), "{text}");
}

#[cfg(feature = "cluster")]
#[tokio::test]
async fn tls_cluster_is_asked() {
    let certificates = Certificates::new("cluster", "127.0.0.1");
    let more = ["--cluster-enabled", "yes", "--tls-cluster", "yes"];
    let Some((server, address)) = certificates.server(&more).await else { return };
    server.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    crate::servers::is_up(&server).await;
    let (number, text) = granted("cluster", &address, &certificates.authority()).await;
    assert!(number > 0, "{text}");
}

/// The sentinel and the primary have TLS ports alone for clients, so one message without TLS would fail.
#[cfg(feature = "sentinel")]
#[tokio::test]
async fn tls_of_sentinels_holds_for_the_primary() {
    let certificates = Certificates::new("sentinel", "127.0.0.1");
    let Some((_server, primary)) = certificates.server(&[]).await else { return };
    let lines = |(name, value): (&str, String)| format!("{name} {value}\n");
    let settings: String = certificates.settings().into_iter().map(lines).collect();
    let port = crate::server::free_port();
    let settings = format!("tls-port {port}\ntls-replication yes\n{settings}");
    let Some(_sentinel) = crate::server::sentinel(&primary, &settings).await else { return };
    let address = format!("127.0.0.1:{port}");
    let (number, text) = granted("sentinel", &address, &certificates.authority()).await;
    assert!(number > 0, "{text}");
}
