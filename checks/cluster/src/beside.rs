//! Other clients beside ours, each at its best, over servers of its own that meet the same scene.
//!
//! All have the time limits of ours and up to three attempts, and repeat only what may be repeated.

use std::any::Any;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use rand::seq::SliceRandom;
use reattempt::endpoints::Endpoints;
use reattempt::{RetryLayer, RetryPolicy};
use reattempt_cluster_check::process::{BlackHole, Cluster, Setup};
use reattempt_cluster_check::tls;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use reqwest_middleware::ClientBuilder;
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use tokio::net::TcpStream;
use tokio::process::Command;
use tokio::time::{sleep, timeout};
use tonic::transport::{Channel, Endpoint};
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::load::{CompleteOnResponse, PeakEwma};
use tower::retry::{Policy, Retry};
use tower::timeout::Timeout;
use tower::util::MapRequest;
use tower::{BoxError, Layer, ServiceExt};

use crate::calls::{Done, Kind, Load, Send, sender};
use crate::client::{Attempts, Body, CONNECT, Maker, Node};

/// 200 calls a second.
const EVERY: Duration = Duration::from_millis(5);
const WORK: Duration = Duration::from_millis(25);
/// The time limit of an attempt.
const LIMIT: Duration = Duration::from_millis(550);
const ATTEMPTS: u32 = 3;
/// The decay of tower's peak EWMA, as in linkerd's proxy.
const DECAY: Duration = Duration::from_secs(10);

/// The course of a scene.
#[derive(Debug, Clone, Copy)]
enum Course {
    OneOfThree,
    TwoOfFive,
    Rolling,
    Stopped,
    BlackHole,
}

impl Course {
    const ALL: [Self; 5] = [Self::OneOfThree, Self::TwoOfFive, Self::Rolling, Self::Stopped, Self::BlackHole];

    fn title(self) -> &'static str {
        match self {
            Self::OneOfThree => "one of three servers is killed, and restarted after 3 s",
            Self::TwoOfFive => "two of five servers are killed within 0.2 s, and restarted after 3 s",
            Self::Rolling => "each of five servers in turn ends in good order, and is restarted after 0.3 s",
            Self::Stopped => "one of five servers is stopped for 3 s, and accepts connections meanwhile",
            Self::BlackHole => "the port of one of five servers is a black hole for 3 s",
        }
    }

    fn servers(self) -> u8 {
        if matches!(self, Self::OneOfThree) { 3 } else { 5 }
    }

    async fn play(self, cluster: &mut Cluster) -> Result<(), BoxError> {
        let addresses = cluster.addresses();
        sleep(Duration::from_secs(1)).await;
        match self {
            Self::OneOfThree => {
                cluster.kill(addresses[0]).await?;
                sleep(Duration::from_secs(3)).await;
                cluster.start_at(addresses[0]).await?;
            }
            Self::TwoOfFive => {
                cluster.kill(addresses[0]).await?;
                sleep(Duration::from_millis(200)).await;
                cluster.kill(addresses[1]).await?;
                sleep(Duration::from_secs(3)).await;
                cluster.start_at(addresses[0]).await?;
                cluster.start_at(addresses[1]).await?;
            }
            Self::Rolling => {
                for address in addresses {
                    cluster.terminate(address).await?;
                    sleep(Duration::from_millis(300)).await;
                    cluster.start_at(address).await?;
                    sleep(Duration::from_millis(700)).await;
                }
            }
            Self::Stopped => cluster.stop(addresses[0], Duration::from_secs(3)).await?,
            Self::BlackHole => {
                cluster.kill(addresses[0]).await?;
                let hole = BlackHole::at(addresses[0]).await?;
                sleep(Duration::from_secs(3)).await;
                drop(hole);
                cluster.start_at(addresses[0]).await?;
            }
        }
        sleep(Duration::from_secs(1)).await;
        Ok(())
    }
}

/// A client over several servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Client<'a> {
    Reattempt,
    /// Peak EWMA and two choices, and tower's retries around it.
    Tower,
    /// Tonic's channel with a list of endpoints, and tower's retries around it.
    Tonic,
    /// The next of the servers in random order.
    Loop,
    /// A name that a resolver answers with all servers in random order, and reqwest-retry.
    Reqwest,
    /// A plain client through an Envoy on this machine, with its retries and outlier detection.
    Envoy(&'a Path),
}

impl Client<'_> {
    fn name(self) -> &'static str {
        match self {
            Self::Reattempt => "reattempt",
            Self::Tower => "tower's Balance",
            Self::Tonic => "tonic's channel",
            Self::Loop => "a loop",
            Self::Reqwest => "reqwest over DNS",
            Self::Envoy(_) => "Envoy",
        }
    }

    /// Returns the client, and what must live as long.
    async fn over(self, cluster: &Cluster) -> Result<(Send, Box<dyn Any>), BoxError> {
        let addresses = cluster.addresses();
        let maker =
            Maker { attempts: Attempts::default(), tls: tls::client(cluster.store())?, http2: self == Self::Tonic };
        let sender = match self {
            Self::Reattempt => {
                let endpoints = Endpoints::list(addresses)?.connect(move |address| maker.client_to(address));
                let balanced = endpoints.attempt_timeout(LIMIT).http();
                sender(RetryLayer::new(RetryPolicy::http().boxed_errors()).layer(balanced))
            }
            Self::Tower => {
                let measured = move |address| {
                    let node = Timeout::new(maker.client_to::<Body>(address), LIMIT);
                    PeakEwma::new(node, WORK, DECAY.as_nanos() as f64, CompleteOnResponse::default())
                };
                let list = ServiceList::new::<Request<Body>>(addresses.into_iter().map(measured));
                sender(Retry::new(Thrice(ATTEMPTS), Buffer::new(Balance::new(list), 1024)))
            }
            Self::Tonic => {
                let endpoint = |address| Endpoint::from_shared(format!("http://{address}"));
                let endpoints = addresses.iter().map(endpoint).collect::<Result<Vec<_>, _>>()?;
                let limited = |endpoint: Endpoint| endpoint.connect_timeout(CONNECT).timeout(LIMIT);
                let channel = Channel::balance_list(endpoints.into_iter().map(limited));
                let body = |request: Request<Body>| request.map(tonic::body::Body::new);
                sender(Retry::new(Thrice(ATTEMPTS), MapRequest::new(channel, body)))
            }
            Self::Loop => {
                let nodes: Vec<Node<Body>> = addresses.into_iter().map(|address| maker.client_to(address)).collect();
                in_a_loop(nodes.into())
            }
            Self::Reqwest => over_dns(&addresses)?,
            Self::Envoy(program) => return behind_envoy(program, &maker, cluster).await,
        };
        Ok((sender, Box::new(())))
    }
}

/// Repeats what may be repeated, if the attempt failed or the status is one of the server's.
#[derive(Debug, Clone)]
struct Thrice(u32);

impl<R, E> Policy<Request<Body>, Response<R>, E> for Thrice {
    type Future = std::future::Ready<()>;

    fn retry(&mut self, request: &mut Request<Body>, result: &mut Result<Response<R>, E>) -> Option<Self::Future> {
        let failed = result.as_ref().map_or(true, |response| response.status().is_server_error());
        self.0 -= 1;
        (failed && self.0 > 0 && may_be_repeated(request)).then(|| std::future::ready(()))
    }

    fn clone_request(&mut self, request: &Request<Body>) -> Option<Request<Body>> {
        Some(request.clone())
    }
}

fn may_be_repeated<B>(request: &Request<B>) -> bool {
    request.method() == Method::GET || request.headers().contains_key("idempotency-key")
}

/// Tries servers in random order.
fn in_a_loop(nodes: Arc<[Node<Body>]>) -> Send {
    Arc::new(move |request: Request<Body>| {
        let mut order: Vec<_> = nodes.to_vec();
        order.shuffle(&mut rand::rng());
        Box::pin(async move {
            let attempts = if may_be_repeated(&request) { ATTEMPTS } else { 1 };
            let mut failure = BoxError::from("no servers");
            for node in order.into_iter().cycle().take(attempts as usize) {
                let attempt = timeout(LIMIT, node.oneshot(request.clone())).await;
                match attempt.map_err(BoxError::from).and_then(|result| Ok(result?)) {
                    Ok(response) if response.status().is_success() => {
                        response.into_body().collect().await?;
                        return Ok(());
                    }
                    Ok(response) => failure = format!("status {}", response.status()).into(),
                    Err(error) => failure = error,
                }
            }
            Err(failure)
        })
    })
}

/// Answers every name with all servers in random order.
struct Shuffled(Vec<SocketAddr>);

impl Resolve for Shuffled {
    fn resolve(&self, _: Name) -> Resolving {
        let mut addresses = self.0.clone();
        addresses.shuffle(&mut rand::rng());
        Box::pin(std::future::ready(Ok::<Addrs, BoxError>(Box::new(addresses.into_iter()))))
    }
}

fn over_dns(addresses: &[SocketAddr]) -> Result<Send, BoxError> {
    let port = addresses.first().map_or(0, SocketAddr::port);
    let resolver = Arc::new(Shuffled(addresses.to_vec()));
    let client = reqwest::Client::builder().connect_timeout(CONNECT).timeout(LIMIT).dns_resolver(resolver).build()?;
    let policy = ExponentialBackoff::builder().retry_bounds(WORK, Duration::from_secs(5));
    let retrying = RetryTransientMiddleware::new_with_policy(policy.build_with_max_retries(ATTEMPTS - 1));
    let [once, retrying] = [ClientBuilder::new(client.clone()), ClientBuilder::new(client).with(retrying)];
    let [once, retrying] = [once.build(), retrying.build()];
    Ok(Arc::new(move |request: Request<Body>| {
        // reqwest-retry would repeat a POST without a key.
        let client = if may_be_repeated(&request) { retrying.clone() } else { once.clone() };
        Box::pin(async move {
            let (mut head, body) = request.into_parts();
            head.uri = format!("http://{}:{port}/", tls::NAME).parse()?;
            let body = body.collect().await?.to_bytes();
            let response = client.execute(Request::from_parts(head, body).try_into()?).await?;
            response.error_for_status()?.bytes().await?;
            Ok(())
        })
    }))
}

/// Starts an Envoy, and returns a plain client of it.
async fn behind_envoy(program: &Path, maker: &Maker, cluster: &Cluster) -> Result<(Send, Box<dyn Any>), BoxError> {
    let port = tokio::net::TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let config = cluster.store().join("envoy.json");
    std::fs::write(&config, envoy_config(port, &cluster.addresses()))?;
    let arguments = ["--disable-hot-restart", "--concurrency", "1", "-l", "off", "-c"];
    let (input, output) = (Stdio::null(), Stdio::null());
    let mut command = Command::new(program);
    command.args(arguments).arg(config).stdin(input).stdout(output).kill_on_drop(true);
    let child = command.stderr(Stdio::null()).spawn()?;
    let listens = async {
        while TcpStream::connect(port).await.is_err() {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), listens).await.map_err(|_| "Envoy did not start")?;
    Ok((sender(maker.client_to::<Body>(port)), Box::new(child)))
}

/// JSON, which is YAML, too.
fn envoy_config(port: SocketAddr, servers: &[SocketAddr]) -> String {
    let at = |address: &SocketAddr| {
        let (ip, port) = (address.ip(), address.port());
        format!(r#""address": {{"socket_address": {{"address": "{ip}", "port_value": {port}}}}}"#)
    };
    let route = |matches: &str, retry_on: &str| {
        format!(
            r#"{{"match": {{"prefix": "/"{matches}}}, "route": {{"cluster": "servers", "timeout": "5s",
            "retry_policy": {{"retry_on": "{retry_on}", "num_retries": {}, "per_try_timeout": "{}s",
            "host_selection_retry_max_attempts": 5, "retry_host_predicate": [{{"name":
            "envoy.retry_host_predicates.previous_hosts", "typed_config": {{"@type":
            "type.googleapis.com/envoy.extensions.retry.host.previous_hosts.v3.PreviousHostsPredicate"}}}}]}}}}}}"#,
            ATTEMPTS - 1,
            LIMIT.as_secs_f64()
        )
    };
    let all = "5xx,reset,connect-failure,refused-stream";
    let has = |header: &str| format!(r#", "headers": [{header}]"#);
    let get = route(&has(r#"{"name": ":method", "string_match": {"exact": "GET"}}"#), all);
    let keyed = route(&has(r#"{"name": "idempotency-key", "present_match": true}"#), all);
    let keyless = route("", "connect-failure,refused-stream");
    let servers: Vec<_> = servers.iter().map(|server| format!(r#"{{"endpoint": {{{}}}}}"#, at(server))).collect();
    format!(
        r#"{{"static_resources": {{"listeners": [{{{}, "filter_chains": [{{"filters": [{{"name": "http", "typed_config": {{
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "http", "route_config": {{"virtual_hosts": [{{"name": "all", "domains": ["*"],
        "routes": [{get}, {keyed}, {keyless}]}}]}}, "http_filters": [{{"name": "router", "typed_config": {{
        "@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"}}}}]}}}}]}}]}}],
        "clusters": [{{"name": "servers", "type": "STATIC", "connect_timeout": "{}s", "lb_policy": "LEAST_REQUEST",
        "outlier_detection": {{"consecutive_5xx": 5, "split_external_local_origin_errors": true,
        "consecutive_local_origin_failure": 1, "interval": "0.1s", "base_ejection_time": "1s",
        "max_ejection_percent": 50}},
        "circuit_breakers": {{"thresholds": [{{"max_retries": 1000}}]}},
        "load_assignment": {{"cluster_name": "servers", "endpoints": [{{"lb_endpoints": [{}]}}]}}}}]}}}}"#,
        at(&port),
        CONNECT.as_secs_f64(),
        servers.join(", ")
    )
}

/// The figures of a client in a scene.
struct Figures {
    /// The shares of calls that may be repeated, and of those that may not, which succeeded.
    success: [f64; 2],
    /// The POSTs that were carried out more than once.
    twice: usize,
    requests_of_a_call: f64,
    /// The median, the 99th percentile and the longest time of the calls that succeeded.
    times: [Duration; 3],
}

impl Figures {
    fn of(done: &[Done], cluster: &Cluster) -> Result<Self, BoxError> {
        let share = |keyless: bool| {
            let calls = done.iter().filter(|call| (call.kind == Kind::Keyless) == keyless);
            let (mut all, mut well) = (0_u32, 0_u32);
            calls.for_each(|call| (all, well) = (all + 1, well + u32::from(call.failure.is_none())));
            f64::from(well) / f64::from(all.max(1))
        };
        let mut counts = HashMap::<u64, usize>::new();
        cluster.ledger()?.into_iter().for_each(|call| *counts.entry(call).or_default() += 1);
        let served = done.iter().filter(|call| call.failure.is_none());
        let mut times: Vec<_> = served.map(|call| call.ended - call.began).collect();
        times.sort_unstable();
        let percentile = |percent: usize| times.get((times.len() * percent / 100).min(times.len().saturating_sub(1)));
        Ok(Self {
            success: [share(false), share(true)],
            twice: counts.values().filter(|count| **count > 1).count(),
            requests_of_a_call: cluster.requests()? as f64 / done.len() as f64,
            times: [50, 99, 100].map(|percent| percentile(percent).copied().unwrap_or_default()),
        })
    }
}

async fn play(course: Course, client: Client<'_>) -> Result<Figures, BoxError> {
    let mut cluster = Cluster::new(&format!("beside-{course:?}"), Setup { https: false, work: WORK })?;
    // One port at several addresses, because a resolver knows no ports.
    let first = cluster.start().await?;
    for number in 2..=course.servers() {
        cluster.start_at(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(127, 0, 0, number)), first.port())).await?;
    }
    let (send, _alive) = client.over(&cluster).await?;
    let load = Load::open(&send, false, EVERY);
    course.play(&mut cluster).await?;
    Figures::of(&load.stop().await?, &cluster)
}

/// Plays each scene with each client. Returns `false` if a POST was carried out twice by ours, or if another client
/// lost fewer calls by more than a tenth of a percent.
pub(crate) async fn run(envoy: Option<&Path>) -> Result<bool, BoxError> {
    let ours = [Client::Reattempt, Client::Tower, Client::Tonic, Client::Loop, Client::Reqwest];
    let clients: Vec<_> = ours.into_iter().chain(envoy.map(Client::Envoy)).collect();
    let mut is_well = true;
    for course in Course::ALL {
        println!("\n-- {}\n", course.title());
        println!(
            "| client | GET, POST with a key | POST without | carried out twice | requests of a call | p50, p99, longest |"
        );
        println!("|---|---|---|---|---|---|");
        let mut own = 0.0;
        for client in &clients {
            let Figures { success, twice, requests_of_a_call, times } = play(course, *client).await?;
            let [repeatable, keyless] = success.map(|share| 100.0 * share);
            let [median, most, longest] = times.map(|time| time.as_millis());
            println!(
                "| {} | {repeatable:.2} % | {keyless:.2} % | {twice} | {requests_of_a_call:.3} | {median}, {most}, {longest} ms |",
                client.name()
            );
            match client {
                Client::Reattempt => (own, is_well) = (repeatable, is_well && twice == 0),
                _ => is_well &= own + 0.1 >= repeatable,
            }
        }
    }
    Ok(is_well)
}
