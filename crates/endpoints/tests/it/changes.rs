//! Large sets that change under load.

use std::collections::{BTreeSet, VecDeque};
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use futures_util::stream::poll_fn;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use reattempt::endpoints::{Balanced, Endpoints};
use reattempt_testing::{ms, secs};
use reattempt_testing_layers::cluster::{Body, get};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep};
use tower::Service;
use tower::discover::Change;

const SIZE: usize = 1000;
/// A change each 10 ms, for three seconds.
const CHANGES: usize = 300;

/// The names that a test has listed, and what became of the connections.
#[derive(Debug, Default)]
struct Log {
    listed: BTreeSet<String>,
    opened: usize,
    closed: usize,
    /// Those that were closed while they were listed.
    torn: Vec<String>,
    /// Those that got a call after they had left.
    late: Vec<String>,
}

/// The client of an endpoint. Its connection is open while a clone lives.
#[derive(Debug, Clone)]
struct Member(Arc<Connection>);

#[derive(Debug)]
struct Connection {
    name: String,
    log: Arc<Mutex<Log>>,
}

impl Member {
    fn open(name: &str, log: &Arc<Mutex<Log>>) -> Self {
        log.lock().unwrap().opened += 1;
        Self(Arc::new(Connection { name: name.to_owned(), log: Arc::clone(log) }))
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A test that fails leaves a lock that is poisoned.
        let Ok(mut log) = self.log.lock() else { return };
        log.closed += 1;
        if log.listed.contains(&self.name) {
            log.torn.push(self.name.clone());
        }
    }
}

impl<B> Service<Request<B>> for Member {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    /// Answers after 5 to 54 ms, so that calls outlive their endpoint.
    fn call(&mut self, _: Request<B>) -> Self::Future {
        let Connection { name, log } = &*self.0;
        let mut log = log.lock().unwrap();
        if !log.listed.contains(name) {
            log.late.push(name.clone());
        }
        let time = ms(5 + name.parse::<u64>().unwrap() % 50);
        let connection = Arc::clone(&self.0);
        Box::pin(async move {
            sleep(time).await;
            drop(connection);
            Ok(Response::new(Full::from("done")))
        })
    }
}

/// The names of a set: of each two changes one adds the next name and one removes the oldest.
struct Names {
    current: VecDeque<String>,
    next: usize,
    log: Arc<Mutex<Log>>,
}

impl Names {
    fn new() -> Self {
        let current: VecDeque<_> = (0..SIZE).map(|number| number.to_string()).collect();
        let log = Log { listed: current.iter().cloned().collect(), ..Log::default() };
        Self { current, next: SIZE, log: Arc::new(Mutex::new(log)) }
    }

    fn add(&mut self) -> String {
        let name = self.next.to_string();
        self.next += 1;
        self.log.lock().unwrap().listed.insert(name.clone());
        self.current.push_back(name.clone());
        name
    }

    fn remove(&mut self) -> String {
        let name = self.current.pop_front().unwrap();
        self.log.lock().unwrap().listed.remove(&name);
        name
    }

    /// Makes 1,000 calls a second while the names change each 10 ms by `change`, and judges both.
    async fn run(&mut self, balanced: Balanced<Member>, mut change: impl FnMut(&mut Self, usize)) {
        let (mut ticks, mut calls) = (interval(ms(1)), JoinSet::new());
        for number in 0..CHANGES * 10 {
            ticks.tick().await;
            if number % 10 == 0 {
                change(self, number / 10);
            }
            let call = balanced.send(get());
            calls.spawn(async move {
                let response = call.await.unwrap();
                let status = response.status();
                response.into_body().collect().await.unwrap();
                status
            });
        }
        let done = calls.join_all().await;
        assert_eq!(done.len(), CHANGES * 10);
        assert!(done.iter().all(|status| *status == StatusCode::OK));

        let handle = balanced.endpoints();
        let view = handle.view();
        assert!(view.iter().all(|view| view.in_flight == 0 && view.out.is_none()));
        let known: BTreeSet<_> = view.iter().map(|view| view.name.to_string()).collect();
        let log = self.log.lock().unwrap();
        assert_eq!(known, log.listed);
        assert_eq!((log.opened, log.closed), (SIZE + CHANGES / 2, CHANGES / 2));
        assert_eq!(log.torn, [""; 0]);
        assert_eq!(log.late, [""; 0]);
    }
}

/// A handle replaces the whole list a hundred times a second. Each connection is opened once, and closed once it has
/// left and its calls have ended.
// E-9, E-10
#[tokio::test(start_paused = true)]
async fn replaced_list_closes_no_stayer() {
    let mut names = Names::new();
    let log = Arc::clone(&names.log);
    let list = Endpoints::list(names.current.clone()).unwrap();
    let opened = Arc::clone(&log);
    let balanced = list.connect(move |name: String| Member::open(&name, &opened)).http();
    let handle = balanced.endpoints();
    let change = |names: &mut Names, number: usize| {
        match number % 2 {
            0 => names.add(),
            _ => names.remove(),
        };
        handle.update(names.current.iter().map(|name| &**name), |name| Member::open(name, &log)).unwrap();
    };
    names.run(balanced, change).await;
}

/// A stream of tower's changes does the same.
// E-10
#[tokio::test(start_paused = true)]
async fn stream_of_changes_closes_no_stayer() {
    let mut names = Names::new();
    let log = Arc::clone(&names.log);
    let (changes, mut found) = mpsc::unbounded_channel::<Result<Change<String, Member>, Infallible>>();
    for name in &names.current {
        changes.send(Ok(Change::Insert(name.clone(), Member::open(name, &log)))).unwrap();
    }
    let balanced = Endpoints::discover(poll_fn(move |cx| found.poll_recv(cx))).http();
    // The task of the set takes the first thousand.
    sleep(secs(1)).await;
    let change = |names: &mut Names, number: usize| {
        let change = match number % 2 {
            0 => {
                let name = names.add();
                Change::Insert(name.clone(), Member::open(&name, &log))
            }
            _ => Change::Remove(names.remove()),
        };
        changes.send(Ok(change)).unwrap();
    };
    names.run(balanced, change).await;
}
