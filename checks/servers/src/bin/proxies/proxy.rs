//! A real proxy with a configuration of its own, in front of two back ends.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};
use tokio::time::{sleep, timeout};
use tower::BoxError;

/// Reached only if the proxy does not start.
const STARTS: Duration = Duration::from_secs(20);

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) http1: SocketAddr,
    pub(crate) http2: SocketAddr,
    /// HTTP/2 on both sides.
    pub(crate) grpc: SocketAddr,
    /// Sends REFUSED_STREAM for requests that a back end has carried out.
    pub(crate) lies: bool,
    _process: Child,
    folder: PathBuf,
}

impl Proxy {
    /// Starts `program` as the proxy of this name.
    pub(crate) async fn start(name: &str, program: &str, back_ends: &[SocketAddr]) -> Result<Self, BoxError> {
        let folder = std::env::temp_dir().join(format!("reattempt-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let free = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        // All three are held until all have a port.
        let held = (free().await?, free().await?, free().await?);
        let ports = Ports { http1: held.0.local_addr()?, http2: held.1.local_addr()?, grpc: held.2.local_addr()? };
        drop(held);
        let file = folder.join(format!("{name}.conf"));
        let (config, arguments): (_, &[&str]) = match name {
            "envoy" => (envoy(&ports, back_ends), &["--disable-hot-restart", "--concurrency", "1", "-l", "off", "-c"]),
            "haproxy" => (haproxy(&ports, back_ends), &["-q", "-f"]),
            "nginx" => (nginx(&ports, back_ends, &folder), &["-e", "/dev/null", "-c"]),
            "caddy" => (caddy(&ports, back_ends), &["run", "--adapter", "caddyfile", "--config"]),
            "squid" => (squid(&ports, &folder), &["-N", "-f"]),
            _ => return Err(format!("{name} is not known: envoy, haproxy, nginx, caddy, squid").into()),
        };
        fs::write(&file, config)?;
        let mut command = Command::new(program);
        // Caddy writes below HOME.
        command
            .args(arguments)
            .arg(&file)
            .env("HOME", &folder)
            .env_remove("XDG_DATA_HOME")
            .env_remove("XDG_CONFIG_HOME");
        let mut process = command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true).spawn()?;
        let listens = async {
            while TcpStream::connect(ports.http1).await.is_err() {
                if process.try_wait()?.is_some() {
                    return Err(BoxError::from(format!("{program} has ended")));
                }
                sleep(Duration::from_millis(20)).await;
            }
            Ok(())
        };
        timeout(STARTS, listens).await.map_err(|_| format!("{program} does not start"))??;
        let Ports { http1, http2, grpc } = ports;
        Ok(Self { http1, http2, grpc, lies: name == "haproxy", _process: process, folder })
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // A folder that stays behind harms nothing.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The addresses at which the proxy listens.
struct Ports {
    http1: SocketAddr,
    http2: SocketAddr,
    grpc: SocketAddr,
}

fn lines(back_ends: &[SocketAddr], line: impl Fn(usize, &SocketAddr) -> String) -> String {
    back_ends.iter().enumerate().map(|(number, address)| line(number, address)).collect()
}

/// Failures reach the client: by default haproxy itself repeats what cannot be connected.
fn haproxy(Ports { http1, http2, grpc }: &Ports, back_ends: &[SocketAddr]) -> String {
    let servers =
        |options: &str| lines(back_ends, |number, address| format!("  server s{number} {address}{options}\n"));
    format!(
        "defaults\n  mode http\n  retries 0\n  timeout connect 1s\n  timeout client 30s\n  timeout server 30s\n\
         frontend http\n  bind {http1}\n  bind {http2} proto h2\n  default_backend http\n\
         frontend grpc\n  bind {grpc} proto h2\n  default_backend grpc\n\
         backend http\n{}backend grpc\n{}",
        servers(""),
        servers(" proto h2")
    )
}

/// A failure takes no back end out of service. By default it is out for ten seconds, so two back ends that are killed
/// in turn serve nothing for longer than a policy of 20 s lasts.
fn nginx(Ports { http1, http2, grpc }: &Ports, back_ends: &[SocketAddr], folder: &Path) -> String {
    let servers = lines(back_ends, |_, address| format!("    server {address} max_fails=0;\n"));
    let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let folders = folders.map(|name| format!("  {name}_temp_path {}/{name};\n", folder.display())).concat();
    format!(
        "daemon off;\nmaster_process off;\npid {}/pid;\nevents {{}}\nhttp {{\n  access_log off;\n{folders}\
         \x20 upstream servers {{\n{servers}  }}\n\
         \x20 server {{ listen {http1}; location / {{ proxy_pass http://servers; }} }}\n\
         \x20 server {{ listen {http2} http2; location / {{ proxy_pass http://servers; }} }}\n\
         \x20 server {{ listen {grpc} http2; location / {{ grpc_pass grpc://servers; }} }}\n}}\n",
        folder.display()
    )
}

fn caddy(Ports { http1, http2, grpc }: &Ports, back_ends: &[SocketAddr]) -> String {
    let all = lines(back_ends, |_, address| format!(" {address}"));
    let all_http2 = lines(back_ends, |_, address| format!(" h2c://{address}"));
    format!(
        "{{\n  admin off\n  persist_config off\n  auto_https off\n  default_bind 127.0.0.1\n\
         \x20 servers {{\n    protocols h1 h2c\n  }}\n}}\n\
         http://{http1}, http://{http2} {{\n  reverse_proxy{all}\n}}\n\
         http://{grpc} {{\n  reverse_proxy{all_http2}\n}}\n"
    )
}

/// JSON, which is YAML, too.
fn envoy(Ports { http1, http2, grpc }: &Ports, back_ends: &[SocketAddr]) -> String {
    let at = |address: &SocketAddr| {
        let (ip, port) = (address.ip(), address.port());
        format!(r#"{{"address": {{"socket_address": {{"address": "{ip}", "port_value": {port}}}}}}}"#)
    };
    let manager =
        "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager";
    let router = "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router";
    let listener = |address, codec, cluster| {
        let address = at(address);
        let address = &address[1..address.len() - 1];
        format!(
            r#"{{{address}, "filter_chains": [{{"filters": [{{"name": "http", "typed_config": {{
            "@type": "{manager}", "stat_prefix": "http", "codec_type": "{codec}",
            "route_config": {{"virtual_hosts": [{{"name": "all", "domains": ["*"],
              "routes": [{{"match": {{"prefix": "/"}}, "route": {{"cluster": "{cluster}"}}}}]}}]}},
            "http_filters": [{{"name": "router", "typed_config": {{"@type": "{router}"}}}}]}}}}]}}]}}"#
        )
    };
    let servers = back_ends.iter().map(|address| format!(r#"{{"endpoint": {}}}"#, at(address))).collect::<Vec<_>>();
    let cluster = |name, options| {
        let servers = servers.join(", ");
        format!(
            r#"{{"name": "{name}", "type": "STATIC", "connect_timeout": "1s"{options},
            "load_assignment": {{"cluster_name": "{name}", "endpoints": [{{"lb_endpoints": [{servers}]}}]}}}}"#
        )
    };
    let over_http2 = r#", "typed_extension_protocol_options": {"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": {
        "@type": "type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions",
        "explicit_http_config": {"http2_protocol_options": {}}}}"#;
    format!(
        r#"{{"static_resources": {{"listeners": [{}, {}, {}], "clusters": [{}, {}]}}}}"#,
        listener(http1, "HTTP1", "http"),
        listener(http2, "HTTP2", "http"),
        listener(grpc, "HTTP2", "grpc"),
        cluster("http", ""),
        cluster("grpc", over_http2)
    )
}

/// Without memory of failures, and with CONNECT to any port.
fn squid(Ports { http1, .. }: &Ports, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "http_port {http1}\nhttp_access allow all\ncache deny all\naccess_log none\ncache_log /dev/null\n\
         pid_filename none\ncoredump_dir {folder}\nnetdb_filename none\nshutdown_lifetime 0 seconds\n"
    )
}
