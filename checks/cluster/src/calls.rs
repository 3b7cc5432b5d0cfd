//! The load: calls of three kinds, and what became of each.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use http::{Method, Request, Response};
use http_body_util::BodyExt;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, interval, sleep};
use tower::{BoxError, Service, ServiceExt};

use crate::client::{Body, text};
use reattempt_cluster_check::server::CALL;
use reattempt_cluster_check::tls::NAME;

/// Sends one call, with its retries, and reads the response.
pub(crate) type Send = Arc<dyn Fn(Request<Body>) -> Answer + std::marker::Send + Sync>;
pub(crate) type Answer = Pin<Box<dyn Future<Output = Result<(), BoxError>> + std::marker::Send>>;

/// Sends calls through a client, which need not be ready.
pub(crate) fn sender<C, B>(client: C) -> Send
where
    C: Service<Request<Body>, Response = Response<B>, Error: Into<BoxError>, Future: std::marker::Send>,
    C: Clone + std::marker::Send + Sync + 'static,
    B: http_body::Body<Error: Into<BoxError>, Data: std::marker::Send> + std::marker::Send,
{
    Arc::new(move |request: Request<Body>| {
        let client = client.clone();
        Box::pin(async move {
            let response = client.oneshot(request).await.map_err(Into::into)?;
            let status = response.status();
            response.into_body().collect().await.map_err(Into::into)?;
            if status.is_success() { Ok(()) } else { Err(format!("status {status}").into()) }
        })
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Get,
    /// A POST with an idempotency key, by which the servers carry it out once.
    Keyed,
    /// A POST that may not be repeated.
    Keyless,
}

/// A call that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) call: u64,
    pub(crate) kind: Kind,
    pub(crate) began: Instant,
    pub(crate) ended: Instant,
    pub(crate) failure: Option<String>,
}

/// Calls that begin until the load is stopped.
#[derive(Debug)]
pub(crate) struct Load {
    stopped: Arc<AtomicBool>,
    task: JoinHandle<Vec<Done>>,
}

struct Calls {
    send: Send,
    scheme: &'static str,
    next: AtomicU64,
}

impl Load {
    /// Begins a call each `every`, whether or not those before it have ended.
    pub(crate) fn open(send: &Send, https: bool, every: Duration) -> Self {
        Self::new(send, https, |calls, stopped| async move {
            let (mut ticks, mut tasks) = (interval(every), JoinSet::new());
            while !stopped.load(Ordering::Relaxed) {
                ticks.tick().await;
                tasks.spawn(Arc::clone(&calls).one());
            }
            tasks.join_all().await
        })
    }

    /// Lets callers call again and again. They begin over a second.
    pub(crate) fn closed(send: &Send, https: bool, callers: u32) -> Self {
        Self::new(send, https, move |calls, stopped| async move {
            let mut tasks = JoinSet::new();
            for caller in 0..callers {
                let (calls, stopped) = (Arc::clone(&calls), Arc::clone(&stopped));
                tasks.spawn(async move {
                    sleep(Duration::from_secs(1) * caller / callers).await;
                    let mut done = Vec::new();
                    while !stopped.load(Ordering::Relaxed) {
                        done.push(Arc::clone(&calls).one().await);
                    }
                    done
                });
            }
            tasks.join_all().await.into_iter().flatten().collect()
        })
    }

    fn new<F, T>(send: &Send, https: bool, run: F) -> Self
    where
        F: FnOnce(Arc<Calls>, Arc<AtomicBool>) -> T,
        T: Future<Output = Vec<Done>> + std::marker::Send + 'static,
    {
        let stopped = Arc::<AtomicBool>::default();
        let scheme = if https { "https" } else { "http" };
        let calls = Arc::new(Calls { send: Arc::clone(send), scheme, next: AtomicU64::new(0) });
        let task = tokio::spawn(run(calls, Arc::clone(&stopped)));
        Self { stopped, task }
    }

    /// Begins no other call, and returns all when the last has ended.
    pub(crate) async fn stop(self) -> Result<Vec<Done>, BoxError> {
        self.stopped.store(true, Ordering::Relaxed);
        Ok(self.task.await?)
    }
}

impl Calls {
    async fn one(self: Arc<Self>) -> Done {
        let call = self.next.fetch_add(1, Ordering::Relaxed);
        let kind = match call % 10 {
            0..6 => Kind::Get,
            6 | 7 => Kind::Keyed,
            _ => Kind::Keyless,
        };
        let began = Instant::now();
        let result = match request(self.scheme, NAME, call, kind) {
            Ok(request) => (self.send)(request).await,
            Err(error) => Err(error.into()),
        };
        let failure = result.err().map(|error| text(&error));
        Done { call, kind, began, ended: Instant::now(), failure }
    }
}

/// Returns the request of a call.
pub(crate) fn request(scheme: &str, name: &str, call: u64, kind: Kind) -> Result<Request<Body>, http::Error> {
    let method = if kind == Kind::Get { Method::GET } else { Method::POST };
    let mut request = Request::builder().method(method).uri(format!("{scheme}://{name}/")).header(CALL, call);
    if kind == Kind::Keyed {
        request = request.header("idempotency-key", format!("call-{call}"));
    }
    request.body(Body::from(if kind == Kind::Get { "" } else { "once" }))
}
