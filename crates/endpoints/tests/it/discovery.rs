//! Tests of discovery: look-ups, `Discover`, the wait for the first answer, and the end of the task.

use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::{FutureExt, stream};
use reattempt::endpoints::{Balanced, EndpointEvent, Endpoints};
use reattempt::error::TimeLimit;
use reattempt::guard::contract::GuardKind;
use reattempt::guard::{Reason, Refused};
use reattempt::{CallOptions, Deadline, RetryLayer, TimedOut};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Cluster, Does, Node, WELL, get, policy};
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep, timeout};
use tower::Layer;
use tower::discover::Change;

#[derive(Debug, Clone)]
enum Answer {
    Found(Vec<&'static str>),
    Fails,
    Panics,
    Hangs,
}

use Answer::{Fails, Found, Hangs, Panics};

/// A registry that follows a script and repeats its last answer.
#[derive(Clone)]
struct Registry {
    script: Arc<Mutex<VecDeque<Answer>>>,
    asked: Arc<Mutex<Vec<Instant>>>,
    events: Arc<Mutex<Vec<String>>>,
    started: Instant,
}

impl Registry {
    fn new(script: impl IntoIterator<Item = Answer>) -> Self {
        Self {
            script: Arc::new(Mutex::new(script.into_iter().collect())),
            asked: Arc::default(),
            events: Arc::default(),
            started: Instant::now(),
        }
    }

    /// Returns a client of the servers that the registry lists every 10 s.
    fn client(&self, cluster: &Cluster) -> Balanced<Node> {
        let (this, cluster) = (self.clone(), cluster.clone());
        let events = Arc::clone(&self.events);
        Endpoints::look_up(secs(10), move || {
            let this = this.clone();
            async move { this.answer().await }
        })
        .connect(move |name: &str| cluster.client(name))
        .observe(move |event| events.lock().unwrap().push(event.to_string()))
        .http()
    }

    async fn answer(&self) -> Result<Vec<&'static str>, &'static str> {
        self.asked.lock().unwrap().push(Instant::now());
        let answer = {
            let mut script = self.script.lock().unwrap();
            let last = script.len() == 1;
            if last { script.front().cloned() } else { script.pop_front() }
        };
        match answer.unwrap() {
            Found(names) => Ok(names),
            Fails => Err("no registry"),
            Panics => panic!("the registry panics"),
            Hangs => std::future::pending().await,
        }
    }

    /// Returns the seconds at which the registry was asked.
    fn asked(&self) -> Vec<u64> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(|at| (*at - self.started).as_secs()).collect()
    }

    fn events(&self) -> Vec<String> {
        std::mem::take(&mut *self.events.lock().unwrap())
    }
}

/// A registry that fails, returns nothing, panics or hangs changes nothing, and is asked again. grpc-dotnet kept a DNS
/// error for ever (#1672).
// E-16
#[tokio::test(start_paused = true)]
async fn failed_look_up_changes_nothing() {
    let cluster = Cluster::default();
    let script = [Found(vec!["a"]), Fails, Found(vec![]), Panics, Hangs, Found(vec!["b"])];
    let registry = Registry::new(script);
    let client = registry.client(&cluster);
    for _ in 0..30 {
        client.send(get()).await.unwrap();
        sleep(secs(1)).await;
    }
    let seen = cluster.seen();
    assert!(seen[..25].iter().all(|name| name == "a"), "{seen:?}");
    // After 10 s it fails: it is asked again 1, 2 and 4 s later. Then it hangs for 10 s, and 8 s later it answers.
    sleep(secs(15)).await;
    assert_eq!(registry.asked(), [0, 10, 11, 13, 17, 35, 45]);
    client.send(get()).await.unwrap();
    assert_eq!(cluster.seen(), ["b"]);
    assert_eq!(
        registry.events(),
        [
            "endpoints found: 1",
            "no endpoints found, next look-up in 1s: no registry",
            "no endpoints found, next look-up in 2s: the answer is empty",
            "no endpoints found, next look-up in 4s: the discovery panicked",
            "no endpoints found, next look-up in 8s: the look-up took more than 10 s",
            "endpoints found: 1",
        ]
    );
}

/// An endpoint that stays keeps its client and its state, wherever it is in the list. A removed one is dropped when its
/// last call has ended.
// E-10, E-16
#[tokio::test(start_paused = true)]
async fn update_keeps_what_stays() {
    let cluster = Cluster::default();
    let script = [Found(vec!["a", "b"]), Found(vec!["b", "a"]), Found(vec!["b", "c"])];
    let registry = Registry::new(script);
    let client = registry.client(&cluster);
    let handle = client.endpoints();
    let response = client.send(get()).await.unwrap();
    let before = handle.view();
    sleep(secs(11)).await;
    let ids = |view: Vec<reattempt::endpoints::EndpointView>| {
        view.into_iter().map(|view| (view.name, view.id)).collect::<Vec<_>>()
    };
    assert_eq!(ids(handle.view()), ids(before.clone()));
    assert_eq!(registry.events(), ["endpoints found: 2"], "another order is no change");

    sleep(secs(10)).await;
    let after = handle.view();
    assert_eq!(ids(after.clone())[0], ids(before)[1]);
    assert_eq!(&*after[1].name, "c");
    let held = usize::from(cluster.seen() == ["a"]);
    assert_eq!(cluster.alive(), 2 + held);
    drop(response);
    assert_eq!(cluster.alive(), 2);
}

/// Before the first answer, calls wait for it, for at most 8 s or until their deadline.
#[tokio::test(start_paused = true)]
async fn calls_wait_for_the_first_answer() {
    let cluster = Cluster::default();
    let slow = Registry::new([Fails, Fails, Found(vec!["a"])]);
    let client = slow.client(&cluster);
    let started = Instant::now();
    let (one, other) = tokio::join!(client.send(get()), client.send(get()));
    assert!(one.is_ok() && other.is_ok());
    assert_eq!(started.elapsed(), secs(3) + ms(10));

    let never = Registry::new([Fails]).client(&cluster);
    let started = Instant::now();
    let error = never.send(get()).await.unwrap_err();
    assert_eq!(error.to_string(), "not sent: the set of endpoints is empty");
    assert_eq!(error.downcast_ref::<Refused>().unwrap().reason(), Reason::Empty);
    assert_eq!(started.elapsed(), secs(8));

    let started = Instant::now();
    let mut request = get();
    request.extensions_mut().insert(CallOptions::new().deadline(Deadline::after(secs(2))));
    let error = never.send(request).await.unwrap_err();
    assert_eq!(error.downcast_ref::<TimedOut>().unwrap().limit(), TimeLimit::Deadline);
    assert_eq!(started.elapsed(), secs(2));
}

/// A question that was lost at the start costs no call: a system's resolver asks again after 5 s.
#[tokio::test(start_paused = true)]
async fn lost_first_question_costs_no_call() {
    let cluster = Cluster::default();
    let servers = cluster.clone();
    let look_up = || async {
        sleep(ms(5_100)).await;
        Ok::<_, std::convert::Infallible>(vec!["a"])
    };
    let endpoints = Endpoints::look_up(secs(30), look_up).connect(move |name| servers.client(name));
    let (client, started) = (endpoints.http(), Instant::now());
    client.send(get()).await.unwrap();
    assert_eq!(started.elapsed(), ms(5_110));
}

/// The number of calls that wait for the first answer is bounded. A call that gives up frees its place.
// E-1
#[tokio::test(start_paused = true)]
async fn waiting_calls_are_bounded() {
    const MOST: usize = 4096;
    let cluster = Cluster::default();
    let client = Registry::new([Hangs]).client(&cluster);
    let mut waiting: Vec<_> = (0..MOST).map(|_| Box::pin(client.send(get()))).collect();
    for call in &mut waiting {
        assert!(call.as_mut().now_or_never().is_none());
    }
    let error = client.send(get()).await.unwrap_err();
    assert_eq!(error.to_string(), "not sent: the set of endpoints is full");
    let refused = error.downcast_ref::<Refused>().unwrap();
    assert_eq!((refused.guard(), refused.reason()), (GuardKind::ENDPOINTS, Reason::Full));
    waiting.pop();
    assert!(client.send(get()).now_or_never().is_none(), "a place is free");
}

/// The retry layer above follows a call that waited.
// E-1
#[tokio::test(start_paused = true)]
async fn call_that_waited_goes_elsewhere() {
    for _ in 0..10 {
        let cluster = Cluster::of([]);
        cluster.set("a", Does::Refuse);
        let registry = Registry::new([Fails, Found(vec!["a", "b"])]);
        let client = RetryLayer::new(policy(2)).layer(registry.client(&cluster));
        assert!(client.send(get()).await.is_ok());
        assert!(cluster.seen().len() <= 2);
    }
}

/// An ejection triggers a look-up, at the earliest 5 s after the last one.
#[tokio::test(start_paused = true)]
async fn ejection_asks_for_a_look_up() {
    let cluster = Cluster::default();
    cluster.set("a", Does::Refuse);
    let registry = Registry::new([Found(vec!["a"])]);
    let client = registry.client(&cluster);
    for _ in 0..30 {
        client.send(get()).await.unwrap_err();
    }
    sleep(secs(6)).await;
    assert_eq!(registry.asked(), [0, 5]);
}

/// Dropping the last handle ends the task, even while the registry hangs, and drops every client.
// E-19
#[tokio::test(start_paused = true)]
async fn last_handle_ends_the_task() {
    for script in [vec![Found(vec!["a", "b"])], vec![Found(vec!["a", "b"]), Hangs]] {
        let (cluster, registry) = (Cluster::default(), Registry::new(script));
        let client = registry.client(&cluster);
        client.send(get()).await.unwrap();
        sleep(secs(12)).await;
        let handle = client.endpoints();
        drop(client);
        assert_eq!((cluster.alive(), Arc::strong_count(&registry.script) > 1), (2, true));
        drop(handle);
        tokio::task::yield_now().await;
        assert_eq!((cluster.alive(), Arc::strong_count(&registry.script)), (0, 1));
    }
}

/// A client that is created outside a runtime begins discovery with its first call.
#[test]
fn client_is_made_without_a_runtime() {
    let cluster = Cluster::default();
    let nodes = cluster.clone();
    let client = Endpoints::look_up(secs(10), || async { Ok::<_, std::io::Error>(["a"]) })
        .connect(move |name: &str| nodes.client(name))
        .http();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        client.send(get()).await.unwrap();
    });
    assert_eq!(cluster.seen(), ["a"]);
}

/// Of very many addresses, a subset is used, and no other clients are created.
#[tokio::test(start_paused = true)]
async fn subset_connects_no_others() {
    let cluster = Cluster::default();
    let nodes = cluster.clone();
    let look_up = || async { Ok::<_, std::io::Error>(0..100_000) };
    let client = Endpoints::look_up(secs(10), look_up)
        .connect(move |number: i32| nodes.client(number))
        .subset(NonZeroUsize::new(3).unwrap())
        .http();
    client.send(get()).await.unwrap();
    assert_eq!((client.endpoints().view().len(), cluster.alive()), (3, 3));
}

type Changes = mpsc::UnboundedSender<Result<Change<&'static str, Node>, std::io::Error>>;

/// Returns a client of the servers in a stream, and the other end of the stream.
fn streamed() -> (Balanced<Node>, Changes, Arc<Mutex<Vec<String>>>) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let changes = Box::pin(stream::unfold(receiver, |mut receiver| async move {
        receiver.recv().await.map(|change| (change, receiver))
    }));
    let events = Arc::<Mutex<Vec<_>>>::default();
    let noted = Arc::clone(&events);
    let endpoints = Endpoints::discover(changes)
        .observe(move |event: &EndpointEvent| noted.lock().unwrap().push(event.to_string()));
    (endpoints.http(), sender, events)
}

async fn names(client: &Balanced<Node>) -> Vec<String> {
    sleep(ms(1)).await;
    client.endpoints().view().iter().map(|view| view.name.to_string()).collect()
}

/// Services come and go with the changes in a stream. The last one stays, and so does the set when the stream fails or
/// ends.
// E-10, E-16
#[tokio::test(start_paused = true)]
async fn stream_of_changes_is_followed() {
    let cluster = Cluster::default();
    let (client, sender, events) = streamed();
    let insert = |name| sender.send(Ok(Change::Insert(name, cluster.client(name)))).unwrap();
    let remove = |name| sender.send(Ok(Change::Remove(name))).unwrap();
    insert("a");
    insert("b");
    assert_eq!(names(&client).await, ["a", "b"]);
    remove("a");
    assert_eq!(names(&client).await, ["b"]);
    remove("b");
    remove("unknown");
    assert_eq!(names(&client).await, ["b"], "the last one stays");
    client.send(get()).await.unwrap();
    insert("c");
    assert_eq!(names(&client).await, ["c"]);

    let id = client.endpoints().view()[0].id;
    insert("c");
    assert_eq!(names(&client).await, ["c"]);
    assert_ne!(client.endpoints().view()[0].id, id, "inserted again it is another service");
    assert_eq!(cluster.alive(), 2, "one in the set, and its original with the task");

    sender.send(Err(std::io::Error::other("a pause"))).unwrap();
    insert("d");
    sleep(secs(2)).await;
    assert_eq!(names(&client).await, ["c", "d"]);
    assert!(events.lock().unwrap().iter().any(|event| event.ends_with("a pause")));
    drop(sender);
    assert_eq!(names(&client).await, ["c", "d"]);
    client.send(get()).await.unwrap();
    // The task has ended, but the handle still exists.
    let handle = client.endpoints();
    handle.update(["c", "e"], |name| cluster.client(name)).unwrap();
    assert_eq!(names(&client).await, ["c", "e"]);
    client.send(get()).await.unwrap();
}

/// A stream that always has a change does not stop the other tasks of its thread.
// E-10
#[tokio::test(start_paused = true)]
async fn endless_changes_let_calls_pass() {
    let cluster = Cluster::of([Does::Status(200)]);
    let node = cluster.client("0");
    let polls = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&polls);
    let changes = stream::poll_fn(move |_| {
        let polls = count.fetch_add(1, Ordering::Relaxed);
        // Ends, so that a failure of this test ends, too.
        let change = Ok::<_, std::io::Error>(Change::Insert("0", node.clone()));
        std::task::Poll::Ready((polls < 1_000_000).then_some(change))
    });
    let client = Endpoints::discover(changes).http();
    assert!(client.send(get()).await.is_ok());
    assert!(polls.load(Ordering::Relaxed) < 1_000_000, "the call waited for the end of the changes");
}

/// A stream that panics is not polled again, and its endpoints stay.
#[tokio::test(start_paused = true)]
async fn stream_that_panics_ends() {
    let cluster = Cluster::default();
    let node = cluster.client("a");
    let mut first = Some(node);
    let changes = stream::poll_fn(move |_| match first.take() {
        Some(node) => std::task::Poll::Ready(Some(Ok::<_, std::io::Error>(Change::Insert("a", node)))),
        None => panic!("the stream panics"),
    });
    let client = Endpoints::discover(changes).http();
    client.send(get()).await.unwrap();
    sleep(Duration::from_secs(60)).await;
    client.send(get()).await.unwrap();
    assert_eq!(cluster.seen(), ["a", "a"]);
}

/// A `connect` that panics is an error of the look-up.
#[tokio::test(start_paused = true)]
async fn panic_of_connect_changes_nothing() {
    let cluster = Cluster::of([WELL]);
    let nodes = cluster.clone();
    let mut calls = 0;
    let client = Endpoints::look_up(secs(1), || async { Ok::<_, std::io::Error>(["a"]) })
        .connect(move |name: &str| {
            calls += 1;
            assert!(calls > 2, "no connection yet");
            nodes.client(name)
        })
        .http();
    let answer = timeout(secs(4), client.send(get())).await.unwrap();
    assert!(answer.is_ok());
}

/// A service that a handle's update has removed returns with the next change in the stream.
// E-10
#[tokio::test(start_paused = true)]
async fn displaced_service_comes_back() {
    let cluster = Cluster::default();
    let (client, changes, _) = streamed();
    for name in ["a", "b"] {
        changes.send(Ok(Change::Insert(name, cluster.client(name)))).unwrap();
    }
    assert_eq!(names(&client).await, ["a", "b"]);
    client.endpoints().update(["b"], |name| cluster.client(name)).unwrap();
    assert_eq!(names(&client).await, ["b"]);
    changes.send(Ok(Change::Insert("c", cluster.client("c")))).unwrap();
    assert_eq!(names(&client).await, ["a", "b", "c"]);
    changes.send(Ok(Change::Remove("b"))).unwrap();
    assert_eq!(names(&client).await, ["a", "c"]);
}

/// Calls do not wait for the first endpoints of a stream that has ended.
#[tokio::test(start_paused = true)]
async fn ended_stream_lets_calls_go_on() {
    let (client, changes, _) = streamed();
    let call = tokio::spawn(client.send(get()));
    drop(changes);
    let began = tokio::time::Instant::now();
    call.await.unwrap().unwrap_err();
    client.send(get()).await.unwrap_err();
    assert!(began.elapsed() < secs(1), "{:?}", began.elapsed());
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

/// A look-up goes on in another runtime after its own has ended: with the next call there, and with what it knew.
// E-16
#[test]
fn look_up_moves_to_another_runtime() {
    let cluster = Cluster::default();
    let asked = Arc::new(Mutex::new(0));
    let (nodes, counted) = (cluster.clone(), Arc::clone(&asked));
    let look_up = move || {
        *counted.lock().unwrap() += 1;
        std::future::ready(Ok::<_, std::io::Error>(["a"]))
    };
    let endpoints = Endpoints::look_up(secs(10), look_up).connect(move |name: &str| nodes.client(name));
    let client = runtime().block_on(async {
        let client = endpoints.http();
        client.send(get()).await.unwrap();
        client
    });
    assert_eq!(*asked.lock().unwrap(), 1);
    let id = client.endpoints().view()[0].id;
    runtime().block_on(async {
        client.send(get()).await.unwrap();
        sleep(secs(15)).await;
    });
    assert_eq!(*asked.lock().unwrap(), 3, "at once, and 10 s later");
    assert_eq!(client.endpoints().view()[0].id, id);
    drop(client);
    assert_eq!(Arc::strong_count(&asked), 1, "the task has ended with the set");
}

/// A stream of changes goes on in another runtime, and keeps its services.
// E-10
#[test]
fn stream_moves_to_another_runtime() {
    let cluster = Cluster::default();
    let (client, changes) = runtime().block_on(async {
        let (client, changes, _) = streamed();
        changes.send(Ok(Change::Insert("a", cluster.client("a")))).unwrap();
        assert_eq!(names(&client).await, ["a"]);
        (client, changes)
    });
    changes.send(Ok(Change::Insert("b", cluster.client("b")))).unwrap();
    runtime().block_on(async {
        client.send(get()).await.unwrap();
        assert_eq!(names(&client).await, ["a", "b"]);
    });
}

/// A call that waits for the first endpoints takes over a task whose runtime has ended in the meantime.
#[test]
fn waiting_call_takes_the_task_over() {
    let cluster = Cluster::default();
    let nodes = cluster.clone();
    let mut first = true;
    let look_up = move || {
        let hangs = std::mem::take(&mut first);
        async move {
            if hangs {
                std::future::pending::<()>().await;
            }
            Ok::<_, std::io::Error>(["a"])
        }
    };
    let endpoints = Endpoints::look_up(secs(10), look_up).connect(move |name: &str| nodes.client(name));
    let own = runtime();
    let client = own.block_on(async {
        let client = endpoints.http();
        tokio::task::yield_now().await;
        client
    });
    runtime().block_on(async move {
        let call = tokio::spawn(client.send(get()));
        sleep(ms(10)).await;
        own.shutdown_background();
        call.await.unwrap().unwrap();
    });
}
