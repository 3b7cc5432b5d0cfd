//! The player of a scene, under a paused clock. It returns the trace of the owner whose calls must not change.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, Uri};
use http_body::{Body, Frame};
use http_body_util::BodyExt;
use reattempt::RetryBudget;
use reattempt_testing::{ms, secs};
use tokio::runtime::Builder;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tower::{BoxError, ServiceExt, service_fn};

use super::client::shared;
use super::scene::{Act, Call, HostileCall, Name, Scene, Upload};
use crate::stacks::erased::{AnyBody, Client, RequestBody, boxed};

const VICTIM: &str = "victim.example";
/// The header with a call's number.
const CALL: &str = "x-call";
const HOSTILE: &str = "x-hostile";

/// A call of the owner as seen by its caller and its server. Times are in milliseconds from the start.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    pub(crate) began: u64,
    pub(crate) ended: u128,
    pub(crate) outcome: String,
    pub(crate) attempts: Vec<u128>,
}

/// The trace of a run, and the longest name that the budget stores.
pub(crate) struct Trace {
    pub(crate) calls: Vec<Ended>,
    pub(crate) longest_name: usize,
}

/// Plays the scene with or without its hostile owner.
pub(crate) fn play(scene: &Scene, attacked: bool) -> Trace {
    reattempt::endpoints::seed_picks(1);
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(played(Arc::new(scene.clone()), attacked))
}

async fn played(scene: Arc<Scene>, attacked: bool) -> Trace {
    let began = Instant::now();
    let arrivals = Arc::new(Mutex::new(HashMap::<usize, Vec<u128>>::new()));
    let (acts, seen) = (Arc::clone(&scene), Arc::clone(&arrivals));
    let servers = service_fn(move |request: Request<RequestBody>| {
        let number = |name| {
            let value = request.headers().get(name)?;
            Some(value.to_str().unwrap().parse::<usize>().unwrap())
        };
        let act = match number(CALL) {
            Some(number) => {
                let mut seen = seen.lock().unwrap();
                let attempts = seen.entry(number).or_default();
                attempts.push(began.elapsed().as_millis());
                let script = acts.calls[number].acts;
                script[(attempts.len() - 1).min(script.len() - 1)]
            }
            None => acts.hostile[number(HOSTILE).unwrap()].act,
        };
        serve(act, request.into_body())
    });
    let budget = RetryBudget::cautious();
    let client = shared(&scene, &budget, boxed(servers));
    let mut hostile = JoinSet::new();
    if attacked {
        for (number, call) in scene.hostile.iter().enumerate() {
            hostile.spawn(attack(client.clone(), call.clone(), number, began));
        }
    }
    let mut calls = JoinSet::new();
    for (number, call) in scene.calls.iter().enumerate() {
        calls.spawn(make(client.clone(), call.clone(), number, began));
    }
    let mut ended = calls.join_all().await;
    hostile.join_all().await;
    ended.sort_by_key(|(number, _)| *number);
    let arrivals = arrivals.lock().unwrap();
    let calls = ended
        .into_iter()
        .map(|(number, ended)| Ended { attempts: arrivals.get(&number).cloned().unwrap_or_default(), ..ended });
    let names = budget.destinations();
    let longest_name = names.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    Trace { calls: calls.collect(), longest_name }
}

async fn serve(act: Act, mut body: RequestBody) -> Result<Response<AnyBody>, io::Error> {
    let upload = async {
        while let Some(frame) = body.frame().await {
            frame.map_err(|_| io::ErrorKind::ConnectionReset)?;
        }
        Ok::<_, io::Error>(())
    };
    let time = if act == Act::Slow { ms(60) } else { ms(5) };
    if act == Act::UploadTimeout {
        let _ = timeout(time, upload).await;
    } else {
        upload.await?;
        sleep(time).await;
    }
    let response = Response::builder();
    let response = match act {
        Act::Status(status) => response.status(status),
        Act::Slow => response.status(200),
        Act::Quota => response
            .status(429)
            .header("x-ratelimit-limit", 100)
            .header("x-ratelimit-remaining", 0)
            .header("x-ratelimit-reset", 3_600),
        Act::Lost => return Err(io::ErrorKind::ConnectionReset.into()),
        Act::Hang => std::future::pending().await,
        Act::UploadTimeout => response.status(408),
    };
    Ok(response.body(AnyBody::default()).unwrap())
}

async fn make(client: Client, call: Call, number: usize, began: Instant) -> (usize, Ended) {
    sleep_until(began + ms(call.at)).await;
    let request = Request::builder().method(call.method).header(CALL, number);
    let request = request.uri(format!("http://{VICTIM}/")).body(upload(call.method)).unwrap();
    let exchange = async {
        let response = client.oneshot(request).await?;
        let status = response.status();
        response.into_body().collect().await?;
        Ok::<_, BoxError>(status)
    };
    let outcome = match timeout(secs(120), exchange).await {
        Ok(Ok(status)) => status.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no end".into(),
    };
    let ended = began.elapsed().as_millis();
    (number, Ended { began: call.at, ended, outcome, attempts: Vec::new() })
}

/// Returns a body that must be kept for a retry, for methods that have one.
fn upload(method: &str) -> RequestBody {
    match method {
        "PUT" => RequestBody::new(Held { frame: Some(8 * 1024), ends: true }),
        _ => RequestBody::default(),
    }
}

async fn attack(client: Client, call: HostileCall, number: usize, began: Instant) {
    sleep_until(began + ms(call.at)).await;
    let long = |length| format!("{number}.{}", "x".repeat(length));
    let (authority, host) = match call.name {
        Name::Own(number) => (Some(format!("host-{number}.example")), None),
        Name::Foreign => (Some(VICTIM.into()), None),
        Name::ForeignHost => (None, Some(VICTIM.into())),
        // The longest that a URI can contain.
        Name::Long => (Some(long(60_000)), None),
        Name::LongHost => (None, Some(long(300_000))),
    };
    let uri = authority.map_or("/".into(), |authority| format!("http://{authority}/"));
    let request = Request::builder().uri(uri.parse::<Uri>().unwrap()).header(HOSTILE, number);
    let request = match host {
        Some(host) => request.header("host", host),
        None => request,
    };
    let (method, body) = match call.body {
        Upload::None => ("GET", RequestBody::default()),
        Upload::Held(bytes) => ("PUT", RequestBody::new(Held { frame: Some(bytes), ends: false })),
    };
    let call_time = Duration::from_millis(call.dropped_after);
    let exchange = client.oneshot(request.method(method).body(body).unwrap());
    let _ = timeout(call_time, exchange).await;
}

/// A body with one frame and no known length, which ends or is held open.
struct Held {
    frame: Option<usize>,
    ends: bool,
}

impl Body for Held {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.frame.take() {
            Some(bytes) => Poll::Ready(Some(Ok(Frame::data(vec![0; bytes].into())))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}
