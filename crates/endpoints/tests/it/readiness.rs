//! Tests of clients that are not ready at once: another endpoint's client is asked too.

use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::FutureExt;
use http::{Request, Response};
use reattempt::endpoints::{Balanced, Endpoints, Keyed, Source};
use reattempt::{RetryBudget, RetryLayer, TimedOut};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Body, Cluster, Does, Node, WELL, get, policy};
use tokio::time::{Instant, Sleep, sleep, timeout};
use tower::{Layer, Service};

/// A client that is ready, or fails, a while after it is first asked.
#[derive(Debug)]
struct Slow {
    node: Node,
    after: Duration,
    asked: Asked,
    errors: Arc<AtomicUsize>,
    sleep: Option<Pin<Box<Sleep>>>,
}

/// The servers whose clients were asked, in order.
type Asked = Arc<Mutex<Vec<String>>>;

impl Clone for Slow {
    fn clone(&self) -> Self {
        let (asked, errors) = (Arc::clone(&self.asked), Arc::clone(&self.errors));
        Self { node: self.node.clone(), after: self.after, asked, errors, sleep: None }
    }
}

impl<B> Service<Request<B>> for Slow {
    type Response = Response<Body>;
    type Error = io::Error;
    type Future = <Node as Service<Request<B>>>::Future;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        let sleep = self.sleep.get_or_insert_with(|| {
            self.asked.lock().unwrap().push(self.node.name.clone());
            Box::pin(sleep(self.after))
        });
        if !self.after.is_zero() {
            std::task::ready!(sleep.as_mut().poll(cx));
        }
        let left = |left: usize| left.checked_sub(1);
        Poll::Ready(match self.errors.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => Err(io::ErrorKind::ConnectionReset.into()),
            Err(_) => Ok(()),
        })
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        self.node.call(request)
    }
}

/// Returns a client of endpoints whose clients are ready after these times.
fn slow(cluster: &Cluster, after: &[Duration]) -> Balanced<Slow> {
    endpoints(cluster, after, &Asked::default()).http()
}

/// Returns the endpoints of clients that are ready after these times. A client whose server cannot be ready fails
/// instead.
fn endpoints(
    cluster: &Cluster,
    after: &[Duration],
    asked: &Asked,
) -> Endpoints<impl Keyed<Key = usize> + Source<Client = Slow> + use<>> {
    let (after, cluster, asked) = (after.to_vec(), cluster.clone(), Arc::clone(asked));
    Endpoints::list(0..after.len()).unwrap().connect(move |number| {
        let node = cluster.client(number);
        let errors = if cluster.does(&node.name) == Does::FailReady { usize::MAX } else { 0 };
        Slow { node, after: after[number], asked: Arc::clone(&asked), errors: Arc::new(errors.into()), sleep: None }
    })
}

fn in_flight(client: &Balanced<Slow>) -> usize {
    client.endpoints().view().iter().map(|view| view.in_flight).sum()
}

/// Nobody waits for a client while that of another endpoint is ready. The client that was not ready has no attempt in
/// flight afterwards, and gets calls once it is ready again.
//
#[tokio::test(start_paused = true)]
async fn ready_client_of_pair_sends() {
    let cluster = Cluster::of([WELL, WELL, WELL]);
    let client = slow(&cluster, &[secs(5), secs(0), secs(0)]);
    for _ in 0..100 {
        let began = Instant::now();
        client.send(get()).await.unwrap();
        assert_eq!(began.elapsed(), ms(10));
        assert_eq!(in_flight(&client), 0);
    }
    assert!(!cluster.seen().contains(&"0".to_owned()));
}

/// Of two that are not ready, the one that is ready first sends. It need not be the one that was picked first.
//
#[tokio::test(start_paused = true)]
async fn first_ready_client_sends() {
    for (after, fastest) in [([ms(70), ms(30)], "1"), ([ms(30), ms(70)], "0")] {
        let cluster = Cluster::of([WELL, WELL]);
        let client = slow(&cluster, &after);
        for _ in 0..10 {
            let began = Instant::now();
            client.send(get()).await.unwrap();
            assert_eq!(began.elapsed(), ms(40));
            assert_eq!(cluster.seen(), [fastest]);
            assert_eq!(in_flight(&client), 0);
        }
    }
}

/// If clients are never ready, the calls of two such are lost until their callers have given up once: the wait is a
/// lower bound of the endpoints' latency.
// R-1, P-7
#[tokio::test(start_paused = true)]
async fn many_unready_clients_cost_few_calls() {
    reattempt_endpoints::seed_picks(7);
    let cluster = Cluster::of((0..50).map(|number| if number < 20 { Does::NeverReady } else { WELL }));
    let client = cluster.balanced();
    let mut lost = 0;
    for _ in 0..1_000 {
        lost += usize::from(timeout(secs(1), client.send(get())).await.is_err());
    }
    // 79 where no other endpoint is asked, as long as waits end at the caller's limit.
    assert!(lost <= 15, "{lost}");
}

/// A client that fails leaves the race, and its error is forgotten if the other one sends. The last error is the
/// call's.
// R-1, E-17
#[tokio::test(start_paused = true)]
async fn failing_client_leaves_the_race() {
    let cluster = Cluster::of([WELL, Does::FailReady]);
    let client = endpoints(&cluster, &[ms(50), ms(20)], &Asked::default()).without_ejections().http();
    for _ in 0..20 {
        client.send(get()).await.unwrap();
    }
    let failed = client.endpoints().view()[1].failing;
    assert!(failed > 0.5, "{failed}");

    let cluster = Cluster::of([Does::FailReady, Does::FailReady]);
    let client = slow(&cluster, &[ms(20), ms(50)]);
    let began = Instant::now();
    client.send(get()).await.unwrap_err();
    assert_eq!((began.elapsed(), in_flight(&client)), (ms(50), 0));
}

/// The trail of a call has the endpoint that the attempt was sent to, and not the one that was not ready.
// R-1, E-1
#[tokio::test(start_paused = true)]
async fn trail_has_the_one_that_sent() {
    for _ in 0..50 {
        // Whichever is picked first, the retry of what was refused goes to the endpoint that is left.
        let cluster = Cluster::of([Does::Status(408), Does::Status(408), Does::Status(408)]);
        let balanced = endpoints(&cluster, &[ms(20), ms(40), ms(60)], &Asked::default()).without_ejections().http();
        let client = RetryLayer::new(policy(3).budget(RetryBudget::unlimited())).layer(balanced);
        client.send(get()).await.unwrap();
        let mut seen = cluster.seen();
        seen.sort();
        assert_eq!(seen, ["0", "1", "2"]);
    }
}

/// An attempt that a time limit ended before a client was ready counts as sent to the endpoint that was picked first.
// R-1, E-1
#[tokio::test(start_paused = true)]
async fn trail_has_one_that_was_never_ready() {
    for _ in 0..20 {
        let (cluster, asked) = (Cluster::of([WELL; 3]), Asked::default());
        let balanced = endpoints(&cluster, &[secs(9); 3], &asked).without_ejections().http();
        let policy = policy(3).budget(RetryBudget::unlimited()).attempt_timeout(secs(1));
        RetryLayer::new(policy).layer(balanced).send(get()).await.unwrap_err();
        // The third attempt has no untried rival.
        let asked = asked.lock().unwrap();
        let [first, _, second, _, third] = &asked[..] else { panic!("{asked:?}") };
        assert!(first != second && second != third && first != third, "{asked:?}");
    }
}

/// An endpoint that was picked first and was not ready is still untried, so a retry goes there at once.
// R-1, E-18
#[tokio::test(start_paused = true)]
async fn unready_endpoint_is_untried() {
    for _ in 0..20 {
        let cluster = Cluster::of([Does::Reset, WELL]);
        let balanced = endpoints(&cluster, &[secs(0), ms(50)], &Asked::default()).without_ejections().http();
        let (client, began) = (RetryLayer::new(policy(2)).layer(balanced), Instant::now());
        client.send(get()).await.unwrap();
        assert_eq!((began.elapsed(), cluster.seen()), (ms(60), vec!["0".to_owned(), "1".to_owned()]));
    }
}

/// An error that a client returned at once is the attempt's, although its next clone would be ready.
// R-1, E-17
#[tokio::test(start_paused = true)]
async fn first_error_is_not_lost() {
    let cluster = Cluster::of([WELL]);
    let (node, errors) = (cluster.client("0"), Arc::new(AtomicUsize::new(1)));
    let client = Slow { node, after: ms(0), asked: Asked::default(), errors, sleep: None };
    let client = Endpoints::list(["0"]).unwrap().connect(move |_| client.clone()).http();
    client.send(get()).await.unwrap_err();
    client.send(get()).await.unwrap();
}

/// A POST whose key is known as one tier's is not sent to another tier because that one's client is ready.
// R-1, E-2
#[tokio::test(start_paused = true)]
async fn rival_stays_in_the_tier_of_a_key() {
    let cluster = Cluster::of([WELL, WELL]);
    let endpoints = endpoints(&cluster, &[ms(50), ms(0)], &Asked::default());
    let client = endpoints.placed(|key, place| place.tier(*key)).http();
    for number in 0..10 {
        let keyed = Request::post("http://service/").header("idempotency-key", format!("\"{number}\""));
        client.send(keyed.body(Body::from("charge")).unwrap()).await.unwrap();
        assert_eq!(cluster.seen(), ["0"]);
    }
}

/// A set's own time limit ends the wait, and both endpoints were too slow.
//
#[tokio::test(start_paused = true)]
async fn time_limit_ends_the_wait() {
    let cluster = Cluster::of([WELL, WELL]);
    let client = endpoints(&cluster, &[secs(9), secs(9)], &Asked::default()).attempt_timeout(secs(1)).http();
    let error = client.send(get()).await.unwrap_err();
    assert!(error.is::<TimedOut>(), "{error}");
    assert!(client.endpoints().view().iter().all(|view| view.failing > 0.0 && view.in_flight == 0));

    // The limit counts from the start of the call.
    let cluster = Cluster::of([Does::Hang, Does::Hang]);
    let client = endpoints(&cluster, &[ms(600), ms(600)], &Asked::default()).attempt_timeout(secs(1)).http();
    let began = Instant::now();
    client.send(get()).await.unwrap_err();
    assert_eq!(began.elapsed(), secs(1));
}

/// A call that is dropped while it waits holds nothing.
//
#[tokio::test(start_paused = true)]
async fn dropped_wait_holds_nothing() {
    let cluster = Cluster::of([WELL, WELL]);
    let client = slow(&cluster, &[secs(9), secs(9)]);
    let alive = cluster.alive();
    let mut call = Box::pin(client.send(get()));
    assert!(call.as_mut().now_or_never().is_none());
    assert_eq!((in_flight(&client), cluster.alive()), (2, alive + 2));
    drop(call);
    assert_eq!((in_flight(&client), cluster.alive()), (0, alive));
    assert!(cluster.seen().is_empty());
}
