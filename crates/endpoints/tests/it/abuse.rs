//! Tests of resolvers, services and callers that misbehave: calls in flight end as they would, and the set goes on.

use std::convert::Infallible;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

use futures_util::stream;
use http::{Request, StatusCode};
use reattempt::endpoints::{Balanced, Endpoints, EndpointsHandle};
use reattempt::guard::{Bulkhead, CircuitBreaker};
use reattempt::hedge::HedgePolicy;
use reattempt::standard::StandardLayer;
use reattempt::{CallOptions, Deadline};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Body, Cluster, Does, Node, WELL, get};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tower::discover::Change;
use tower::{Layer, Service};

/// A key whose text may panic.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    panics: bool,
}

fn key(name: impl ToString) -> Key {
    Key { name: name.to_string(), panics: false }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        assert!(!self.panics, "the key panics");
        f.write_str(&self.name)
    }
}

/// The second answer of a look-up, after one that is in order.
#[derive(Debug, Clone, Copy)]
enum Next {
    Panics,
    PanicsBeforeItsFuture,
    PanicsInItsKeys,
    PanicsInAKey,
    PanicsInConnect,
    Hangs,
    Fails,
    Nothing,
    Reordered,
    Repeated,
    Many,
    Others,
}

const ALL: [Next; 12] = [
    Next::Panics,
    Next::PanicsBeforeItsFuture,
    Next::PanicsInItsKeys,
    Next::PanicsInAKey,
    Next::PanicsInConnect,
    Next::Hangs,
    Next::Fails,
    Next::Nothing,
    Next::Reordered,
    Next::Repeated,
    Next::Many,
    Next::Others,
];

type Keys = Box<dyn Iterator<Item = Key> + Send>;

async fn answer(asked: u32, next: Option<Next>) -> Result<Keys, &'static str> {
    let keys = |names: Vec<Key>| Ok(Box::new(names.into_iter()) as Keys);
    match next {
        None if asked == 1 => keys(vec![key("a"), key("b")]),
        None => keys(vec![key("a"), key("e")]),
        Some(Next::Panics) => panic!("the resolver panics"),
        Some(Next::PanicsInItsKeys) => {
            Ok(Box::new((0..3).map(|number| if number < 2 { key(number) } else { panic!("the keys panic") })))
        }
        Some(Next::PanicsInAKey) => keys(vec![key("a"), Key { name: "b".into(), panics: true }]),
        Some(Next::PanicsInConnect) => keys(vec![key("a"), key("panics")]),
        Some(Next::Hangs) => std::future::pending().await,
        Some(Next::Fails) => Err("no registry"),
        Some(Next::Nothing) => keys(Vec::new()),
        Some(Next::Reordered) => keys(vec![key("b"), key("a")]),
        Some(Next::Repeated) => keys(vec![key("a"), key("b"), key("a"), key("b")]),
        Some(Next::Many) => Ok(Box::new((0..100_000).map(key))),
        Some(Next::Others) => keys(vec![key("c"), key("d")]),
        Some(Next::PanicsBeforeItsFuture) => unreachable!(),
    }
}

fn looked_up(cluster: &Cluster, next: Next) -> Balanced<Node> {
    let (nodes, mut asked) = (cluster.clone(), 0);
    let look_up = move || {
        asked += 1;
        let next = (asked == 2).then_some(next);
        assert!(!matches!(next, Some(Next::PanicsBeforeItsFuture)), "the closure panics");
        answer(asked, next)
    };
    let connect = move |key: Key| {
        assert_ne!(key.name, "panics", "no client");
        nodes.client(key)
    };
    Endpoints::look_up(secs(10), look_up).connect(connect).http()
}

fn names(handle: &EndpointsHandle<Node>) -> Vec<String> {
    handle.view().iter().map(|view| view.name.to_string()).collect()
}

/// Whatever a resolver does, calls in flight end well. The endpoints stay, or are those of its answer, and its next
/// answer is used.
// E-10, E-16
#[tokio::test(start_paused = true)]
async fn resolver_that_errs_loses_no_call() {
    for next in ALL {
        let cluster = Cluster::of([]);
        cluster.set("a", Does::Answer(secs(15)));
        cluster.set("b", Does::Answer(secs(15)));
        let client = looked_up(&cluster, next);
        let handle = client.endpoints();
        let calls: Vec<_> = (0..8).map(|_| tokio::spawn(client.send(get()))).collect();
        sleep(ms(1)).await;
        let in_flight = |handle: &EndpointsHandle<Node>| handle.view().iter().map(|view| view.in_flight).sum::<usize>();
        assert_eq!(in_flight(&handle), 8, "{next:?}");
        // The second look-up is at 10 s, and the third at 11 s at the earliest.
        sleep(ms(10_500)).await;
        let (length, kept) = match next {
            Next::Many => (100_000, false),
            Next::Others => (2, false),
            _ => (2, true),
        };
        assert_eq!(handle.view().len(), length, "{next:?}");
        assert_eq!(names(&handle) == ["a", "b"], kept, "{next:?}: {:?}", &names(&handle)[..2]);
        assert_eq!(in_flight(&handle), if kept { 8 } else { 0 }, "{next:?}");
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().status(), StatusCode::OK, "{next:?}");
        }
        client.send(get()).await.unwrap();
        // The longest look-up takes 10 s, and the next one comes at most 10 s later.
        sleep(secs(25)).await;
        assert_eq!(names(&handle), ["a", "e"], "{next:?}");
        client.send(get()).await.unwrap();
    }
}

/// A stream whose key or service panics has ended, and says so. Its endpoints and their calls stay.
// E-10, E-16
#[tokio::test(start_paused = true)]
async fn panic_of_a_change_ends_the_stream() {
    /// A client whose clone panics, if it is to.
    #[derive(Debug)]
    struct Fragile(Node, bool);
    impl Clone for Fragile {
        fn clone(&self) -> Self {
            assert!(!self.1, "the clone panics");
            Self(self.0.clone(), false)
        }
    }
    impl Service<Request<Body>> for Fragile {
        type Response = <Node as Service<Request<Body>>>::Response;
        type Error = <Node as Service<Request<Body>>>::Error;
        type Future = <Node as Service<Request<Body>>>::Future;

        fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
            Service::<Request<Body>>::poll_ready(&mut self.0, cx)
        }

        fn call(&mut self, request: Request<Body>) -> Self::Future {
            self.0.call(request)
        }
    }
    for of_key in [true, false] {
        let cluster = Cluster::of([]);
        cluster.set("a", Does::Answer(secs(5)));
        let (sender, receiver) = mpsc::unbounded_channel::<Result<Change<Key, Fragile>, Infallible>>();
        let changes = Box::pin(stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|change| (change, receiver))
        }));
        let events = Arc::<Mutex<Vec<_>>>::default();
        let noted = Arc::clone(&events);
        let client =
            Endpoints::discover(changes).observe(move |event| noted.lock().unwrap().push(event.to_string())).http();
        sender.send(Ok(Change::Insert(key("a"), Fragile(cluster.client("a"), false)))).unwrap();
        let call = tokio::spawn(client.send(get()));
        sleep(ms(1)).await;
        let panics = Key { name: "b".into(), panics: of_key };
        sender.send(Ok(Change::Insert(panics, Fragile(cluster.client("b"), !of_key)))).unwrap();
        sleep(secs(1)).await;
        assert_eq!(events.lock().unwrap().last().unwrap(), "no endpoints found: the discovery panicked");
        assert!(call.await.unwrap().is_ok());
        client.send(get()).await.unwrap();
        let handle = client.endpoints();
        assert_eq!(handle.view().len(), 1);
        assert!(sender.is_closed(), "the task has ended");
        handle.update(["a", "c"], |name| Fragile(cluster.client(name), false)).unwrap();
        assert_eq!(handle.view().len(), 2);
    }
}

/// A handle outlives its task, the runtime of that task and every client. Its update then works as before, and a call
/// in flight at a removed endpoint ends.
// E-10
#[test]
fn handle_outlives_its_task() {
    let cluster = Cluster::of([]);
    cluster.set("a", Does::Answer(secs(5)));
    let own = || tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    let first = own();
    let client = first.block_on(async {
        let node = cluster.client("a");
        let ended = stream::iter([Ok::<_, Infallible>(Change::Insert("a", node))]);
        let client = Endpoints::discover(ended).http();
        sleep(secs(1)).await;
        client
    });
    drop(first);
    let handle = client.endpoints();
    own().block_on(async {
        let call = tokio::spawn(client.send(get()));
        sleep(secs(1)).await;
        let nodes = cluster.clone();
        handle.update(["b"], move |name| nodes.client(name)).unwrap();
        client.send(get()).await.unwrap();
        assert!(call.await.unwrap().is_ok());
    });
    assert_eq!(cluster.seen(), ["a", "b"]);
    drop(client);
    // Outside a runtime, too.
    let nodes = cluster.clone();
    handle.update(["b", "c"], move |name| nodes.client(name)).unwrap();
    assert_eq!((handle.view().len(), cluster.alive()), (2, 2));
    drop(handle);
    assert_eq!(cluster.alive(), 0);
}

/// Calls that are dropped past their deadline notify the observer, whose panic reaches the caller. While the thread
/// already unwinds, a second panic would abort the process, so no observer is notified. The failures count either way.
// E-10, trap 72
#[tokio::test(start_paused = true)]
async fn unwinding_call_notifies_no_observer() {
    for unwinds in [false, true] {
        let cluster = Cluster::of([Does::Hang, Does::Hang]);
        let notified = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&notified);
        let observed = cluster.list().observe(move |_| {
            count.fetch_add(1, Relaxed);
            resume_unwind(Box::new("the observer's fault"));
        });
        let client = observed.http();
        let late = || {
            let mut request = get();
            request.extensions_mut().insert(CallOptions::new().deadline(Deadline::after(secs(2))));
            let mut call = Box::pin(client.send(request));
            assert!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            call
        };
        let calls: Vec<_> = (0..20).map(|_| late()).collect();
        tokio::time::advance(secs(3)).await;
        let dropped = catch_unwind(AssertUnwindSafe(|| {
            let _calls = calls;
            if unwinds {
                resume_unwind(Box::new("the caller's fault"));
            }
        }));
        let fault = if unwinds { "the caller's fault" } else { "the observer's fault" };
        assert_eq!(dropped.unwrap_err().downcast_ref::<&str>(), Some(&fault));
        assert_eq!(notified.load(Relaxed), u32::from(!unwinds));
        assert!(client.endpoints().view().iter().all(|view| view.failing > 0.5 && view.in_flight == 0));
    }
}

/// An update whose closure panics changes nothing.
// E-10
#[tokio::test(start_paused = true)]
async fn update_that_panics_changes_nothing() {
    let cluster = Cluster::of([WELL]);
    let client = cluster.balanced();
    let handle = client.endpoints();
    let call = tokio::spawn(client.send(get()));
    sleep(ms(1)).await;
    let update = || handle.update(["0", "1"], |_| -> Node { panic!("no client") });
    assert!(catch_unwind(AssertUnwindSafe(update)).is_err());
    assert_eq!((names(&handle), handle.view()[0].in_flight), (vec!["0".to_owned()], 1));
    assert!(call.await.unwrap().is_ok());
    handle.update(["1"], |name| cluster.client(name)).unwrap();
    client.send(get()).await.unwrap();
}

/// A service that panics in `call` ends its own call. All places are free afterwards, whatever the layers above, and
/// other calls in flight end well.
// E-9, E-13
#[tokio::test(start_paused = true)]
async fn panic_in_call_loses_no_other_call() {
    let url = || Endpoints::urls(["http://0"]).unwrap();
    let request = || Request::get("http://0/").body(Body::default()).unwrap();
    let stack = || StandardLayer::http().limits(CircuitBreaker::rate(), Bulkhead::new(3));
    let hedged = stack().hedge(HedgePolicy::http().boxed_errors()).endpoints(url());
    let retried = stack().endpoints(url());
    let handles = [retried.endpoints_handle(), hedged.endpoints_handle()];
    let cluster = Cluster::of([Does::Answer(secs(2))]);
    let (retried, hedged) = (retried.layer(cluster.client("")), hedged.layer(cluster.client("")));
    for (is_hedged, handle) in [false, true].into_iter().zip(handles) {
        let send = || {
            let (retried, hedged) = (retried.clone(), hedged.clone());
            tokio::spawn(async move {
                match is_hedged {
                    true => hedged.send(request()).await.map(|response| response.status()),
                    false => retried.send(request()).await.map(|response| response.status()),
                }
            })
        };
        cluster.set("0", Does::Answer(secs(2)));
        let others = [send(), send()];
        sleep(ms(1)).await;
        cluster.set("0", Does::Panic);
        for _ in 0..10 {
            assert!(send().await.unwrap_err().is_panic());
        }
        assert_eq!(handle.view()[0].in_flight, 2);
        for other in others {
            assert_eq!(other.await.unwrap().unwrap(), StatusCode::OK);
        }
        cluster.set("0", Does::Answer(ms(1)));
        let all = [send(), send(), send()];
        for call in all {
            assert_eq!(call.await.unwrap().unwrap(), StatusCode::OK, "a place is missing");
        }
        assert_eq!(handle.view()[0].in_flight, 0);
    }
}
