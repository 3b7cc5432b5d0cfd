//! The send rate and the responsive pace against the rate limit of a real nginx.
//!
//! `run` starts nginx, which allows each of two paths 100 requests a second, and passes its port. Both clients run side
//! by side, each with 16 callers that call again at once. The first seconds are left out, because both begin without a
//! limit.

use std::cell::Cell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::guard::{GuardLayer, Pace, SendRate};
use reattempt::schedule::Responsive;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, timeout_at};
use tower::{BoxError, Service, ServiceBuilder, ServiceExt};

/// The requests a second that nginx allows, as in `run`.
const ALLOWED: f64 = 100.0;

const CALLERS: usize = 16;
const WARM_UP: Duration = Duration::from_secs(8);
const MEASURED: Duration = Duration::from_secs(22);

/// The goal of the send rate, at least this share of the allowed requests, and at most this share of refusals.
const USED: f64 = 0.90;
const REFUSED: f64 = 0.02;

/// The answers in the time that is measured.
#[derive(Debug, Default, Clone)]
struct Counts {
    served: Rc<Cell<u32>>,
    refused: Rc<Cell<u32>>,
}

impl Counts {
    fn used(&self) -> f64 {
        f64::from(self.served.get()) / (ALLOWED * MEASURED.as_secs_f64())
    }

    fn refusals(&self) -> f64 {
        let refused = f64::from(self.refused.get());
        refused / (refused + f64::from(self.served.get())).max(1.0)
    }

    fn print(&self, name: &str) {
        println!(
            "{name:<16} {:>5} served, {:>4.1} % of the allowed rate; {:>3} refused, {:.2} %",
            self.served.get(),
            100.0 * self.used(),
            self.refused.get(),
            100.0 * self.refusals()
        );
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, BoxError> {
    let port = std::env::args().nth(1).ok_or("usage: reattempt-nginx-check PORT")?;
    let client = || Client::builder(TokioExecutor::new()).build_http::<Empty<Bytes>>();
    let sending = ServiceBuilder::new().layer(GuardLayer::http(SendRate::new())).service(client());
    let pace = GuardLayer::http(Pace::new(Responsive::new()));
    let pacing = ServiceBuilder::new().layer(pace).service(client());
    let tasks = LocalSet::new();
    let measured = tasks.run_until(async {
        let url = |path| format!("http://127.0.0.1:{port}/{path}");
        tokio::join!(measure(sending, url("sending")), measure(pacing, url("pacing")))
    });
    let (sending, pacing) = measured.await;
    let (sending, pacing) = (sending?, pacing?);
    sending.print("send rate");
    pacing.print("responsive pace");
    // nginx serves a burst of half a second beyond the rate.
    let reached = (USED..1.1).contains(&sending.used()) && sending.refusals() <= REFUSED;
    if !reached {
        eprintln!("the goal of the send rate: {USED} of the allowed rate, at most {REFUSED} refused");
    }
    Ok(if reached { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Lets the callers call until the time is over, and returns what was counted in the part that is measured.
async fn measure<S, B>(client: S, url: String) -> Result<Counts, BoxError>
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>> + Clone + 'static,
    S::Error: Into<BoxError>,
    B: BodyExt + 'static,
{
    let (counts, from) = (Counts::default(), Instant::now() + WARM_UP);
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn_local(call_again(client.clone(), url.clone(), counts.clone(), from));
    }
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    Ok(counts)
}

async fn call_again<S, B>(mut client: S, url: String, counts: Counts, from: Instant) -> Result<(), BoxError>
where
    S: Service<Request<Empty<Bytes>>, Response = Response<B>>,
    S::Error: Into<BoxError>,
    B: BodyExt,
{
    let end = from + MEASURED;
    loop {
        let request = Request::get(&url).body(Empty::new())?;
        let call = async {
            let response = client.ready().await?.call(request).await?;
            let status = response.status();
            // Read to its end, so that the connection is used again.
            drop(response.into_body().collect().await);
            Ok::<_, S::Error>(status)
        };
        let Ok(status) = timeout_at(end, call).await else { return Ok(()) };
        let count = match status.map_err(Into::into)? {
            StatusCode::OK => &counts.served,
            StatusCode::TOO_MANY_REQUESTS => &counts.refused,
            other => return Err(format!("nginx answered {other}").into()),
        };
        if Instant::now() >= from {
            count.set(count.get() + 1);
        }
    }
}
