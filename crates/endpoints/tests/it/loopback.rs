//! Tests with several real servers on loopback: reqwest over base URLs, and hyper-util with one client per address.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::TokioExecutor;
use reattempt::endpoints::{EndpointEvent, Endpoints, EndpointsLayer};
use reattempt::{ReplayBody, RetryLayer};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::policy;
use reattempt_testing_layers::loopback::{answer, nobody, scripted, seen};
use reqwest::redirect::Policy;
use tokio::sync::Notify;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;
use tower::discover::ServiceList;
use tower::{Layer, Service};

/// Both base URLs get requests, with their prefixes, and a dead one costs no call.
#[tokio::test]
async fn reqwest_goes_to_each_base_url() {
    let servers = [scripted([answer(200)]).await, scripted([answer(200)]).await];
    let (_socket, dead) = nobody().await;
    let urls = [servers[0].url("/eu"), servers[1].url("/us"), dead];
    let layer = EndpointsLayer::http(urls).unwrap();
    let client = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
    // Only then does a refused connection prove that a POST was not carried out.
    let policy = policy(3).protocol(|http| http.redirects_below(false));
    let client = RetryLayer::new(policy).layer(layer.layer(client));
    for _ in 0..40 {
        let url = servers[0].url("/eu/orders?id=7").parse().unwrap();
        let request = reqwest::Request::new(reqwest::Method::POST, url);
        let response = client.send(request).await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        response.bytes().await.unwrap();
    }
    let seen = servers.each_ref().map(seen);
    assert_eq!(seen[0].len() + seen[1].len(), 40, "each was carried out once");
    assert!(seen[0].iter().all(|line| line == "POST /eu/orders?id=7"), "{seen:?}");
    assert!(seen[1].iter().all(|line| line == "POST /us/orders?id=7"), "{seen:?}");
    // Calls go to the faster one, so the split depends on the machine.
    assert!(seen.iter().all(|seen| !seen.is_empty()), "{seen:?}");
    let view = layer.endpoints().view();
    assert!(view[2].failing > 0.0 && view.iter().all(|view| view.in_flight == 0), "{view:?}");
}

type HyperBody = ReplayBody<Full<Bytes>>;

/// A resolver that returns the same address for every name.
#[derive(Clone)]
struct Fixed(SocketAddr);

impl Service<Name> for Fixed {
    type Response = std::iter::Once<SocketAddr>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Name) -> Self::Future {
        ready(Ok(std::iter::once(self.0)))
    }
}

/// Returns a hyper-util client that connects to one address, whatever the request's host.
fn client_to(address: SocketAddr) -> Client<HttpConnector<Fixed>, HyperBody> {
    let connector = HttpConnector::new_with_resolver(Fixed(address));
    Client::builder(TokioExecutor::new()).build(connector)
}

fn request() -> Request<Full<Bytes>> {
    Request::post("http://orders.example/a").body(Full::from("once")).unwrap()
}

/// The addresses in a registry change. The request and its host stay the same, and no call is lost.
#[tokio::test]
async fn hyper_follows_addresses() {
    let one = scripted([answer(200)]).await;
    let other = scripted([answer(200)]).await;
    let (_socket, dead) = nobody().await;
    let dead = dead.parse::<Uri>().unwrap().authority().unwrap().as_str().parse().unwrap();
    let found = Arc::new(Mutex::new(vec![one.address(), dead]));
    let listed = Arc::clone(&found);
    let look_up = move || {
        let found = listed.lock().unwrap().clone();
        async move { Ok::<_, Infallible>(found) }
    };
    let balanced = Endpoints::look_up(ms(1), look_up).connect(client_to).http();
    let handle = balanced.endpoints();
    let client = RetryLayer::new(policy(3)).layer(balanced);
    for _ in 0..20 {
        client.send(request()).await.unwrap().collect().await.unwrap();
    }
    assert_eq!(seen(&one).len(), 20);
    *found.lock().unwrap() = vec![other.address()];
    let changed = async {
        while handle.view().len() != 1 {
            tokio::task::yield_now().await;
            tokio::time::sleep(ms(1)).await;
        }
    };
    timeout(secs(20), changed).await.unwrap();
    for _ in 0..20 {
        client.send(request()).await.unwrap().collect().await.unwrap();
    }
    assert_eq!((seen(&one).len(), seen(&other).len()), (20, 20));
    assert_eq!(seen(&other)[0], "POST /a");
}

/// The system's resolver looks up a name.
#[tokio::test]
async fn dns_finds_the_addresses_of_a_name() {
    let server = scripted([answer(200)]).await;
    let name = format!("localhost:{}", server.address().port());
    let balanced = Endpoints::dns(&name, secs(30)).unwrap().connect(client_to).http();
    let client = RetryLayer::new(policy(3)).layer(balanced.clone());
    // The name may also have an IPv6 address without a listener.
    client.send(request()).await.unwrap().collect().await.unwrap();
    let address = server.address().to_string();
    assert!(balanced.endpoints().view().iter().any(|view| *view.name == *address));

    let unknown = Endpoints::dns("no-such-name.invalid:80", secs(30)).unwrap();
    let failed = Arc::new(Notify::new());
    let noted = Arc::clone(&failed);
    let unknown = unknown.connect(client_to).observe(move |event| {
        assert!(matches!(event, EndpointEvent::ResolveFailed { .. }), "{event}");
        noted.notify_one();
    });
    let _client = unknown.http();
    timeout(secs(20), failed.notified()).await.unwrap();
}

/// Any `Discover` works, such as tower's list of services.
#[tokio::test]
async fn list_of_services_is_a_source() {
    let servers = [scripted([answer(200)]).await, scripted([answer(200)]).await];
    let services = servers.each_ref().map(|server| client_to(server.address()));
    let list = ServiceList::new::<Request<HyperBody>>(services);
    let client = RetryLayer::new(policy(3)).layer(Endpoints::discover(list).http());
    for _ in 0..30 {
        client.send(request()).await.unwrap().collect().await.unwrap();
    }
    let [one, other] = servers.each_ref().map(|server| seen(server).len());
    assert!(one > 0 && other > 0 && one + other == 30, "{one} {other}");
}

fn channel(address: SocketAddr) -> Channel {
    Endpoint::from_shared(format!("http://{address}")).unwrap().connect_lazy()
}

/// Without retries and without an endpoint, the caller gets UNAVAILABLE.
#[tokio::test(start_paused = true)]
async fn empty_set_is_unavailable_over_grpc() {
    let look_up = || async { Err::<[SocketAddr; 1], _>("no registry") };
    let balanced = Endpoints::look_up(secs(1), look_up).connect(channel).grpc();
    let request = HealthCheckRequest { service: String::new() };
    let status = HealthClient::new(balanced).check(request).await.unwrap_err();
    assert_eq!(status.code(), tonic::Code::Unavailable);
    assert_eq!(status.message(), "not sent: the set of endpoints is empty");
}
