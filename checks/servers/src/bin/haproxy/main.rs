//! Retries through a real haproxy: back ends that go down and come back, and reloads under load.
//!
//! `reattempt-haproxy-check PROGRAM` starts haproxy in front of two servers of the fault kit, which write one ledger.
//! Calls that may be repeated must all succeed. A POST without a key may fail, and is never carried out twice.

mod proxy;

use std::cell::Cell;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use proxy::Proxy;
use reattempt::report::ReportSlot;
use reattempt::schedule::Constant;
use reattempt::{CallOptions, Http, ReplayBody, Retry, RetryBudget, RetryLayer, RetryPolicy};
use reattempt_faults::{Faults, Ledger, Reply, Rule, Script, Server, Step, WireFault};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{sleep, timeout};
use tower::{BoxError, Layer, ServiceExt};

/// The calls that are made at once.
const CALLERS: usize = 32;

/// The time in which a back end answers, so that each reload finds requests under way.
const ANSWERS: Duration = Duration::from_millis(5);

/// Reached only by a hanging call.
const HANGS: Duration = Duration::from_secs(30);

type Hyper = Client<HttpConnector, ReplayBody<Full<Bytes>>>;

/// The calls of one scene by kind: safe or keyed, and POSTs without a key.
#[derive(Debug, Default)]
struct Counts {
    repeatable: Cell<u32>,
    repeatable_failed: Cell<u32>,
    once: Cell<u32>,
    once_failed: Cell<u32>,
    retries: Cell<u32>,
    ended: Cell<bool>,
}

fn add(cell: &Cell<u32>, number: u32) {
    cell.set(cell.get() + number);
}

fn client(http2: bool) -> Retry<Hyper, RetryPolicy<Http, Constant>> {
    let mut builder = Client::builder(TokioExecutor::new());
    let policy = RetryPolicy::http().backoff(Constant::new(Duration::from_millis(20))).max_attempts(500);
    RetryLayer::new(policy.budget(RetryBudget::unlimited())).layer(builder.http2_only(http2).build_http())
}

/// Makes calls until the scene ends: in turn a GET, a POST with a key, and two without.
async fn call_on(
    client: Retry<Hyper, RetryPolicy<Http, Constant>>,
    base: String,
    caller: usize,
    counts: Rc<Counts>,
) -> Result<(), BoxError> {
    for number in 0.. {
        if counts.ended.get() {
            break;
        }
        let request = Request::builder().uri(format!("{base}/{caller}/{number}"));
        let (request, repeatable) = match number % 4 {
            0 => (request.method("GET"), true),
            1 => (request.method("POST").header("idempotency-key", format!("\"{base}{caller}-{number}\"")), true),
            _ => (request.method("POST"), false),
        };
        let slot = ReportSlot::default();
        let request = request.extension(CallOptions::new().report_to(&slot)).body(Full::from("pay"))?;
        let call = async {
            let response = client.clone().oneshot(request).await?;
            let status = response.status();
            response.into_body().collect().await?;
            Ok::<_, BoxError>(status)
        };
        let served = timeout(HANGS, call).await?.is_ok_and(|status| status.is_success());
        let (all, failed) = match repeatable {
            true => (&counts.repeatable, &counts.repeatable_failed),
            false => (&counts.once, &counts.once_failed),
        };
        add(all, 1);
        add(failed, u32::from(!served));
        add(&counts.retries, slot.take().map_or(0, |report| report.retries()));
    }
    Ok(())
}

/// Runs a scene under load. Returns `true` if it holds: every repeatable call was served.
async fn scene(
    name: &str,
    base: String,
    http2: bool,
    scene: impl AsyncFnOnce() -> Result<(), BoxError>,
) -> Result<bool, BoxError> {
    let counts = Rc::new(Counts::default());
    let (client, mut callers) = (client(http2), JoinSet::new());
    for caller in 0..CALLERS {
        callers.spawn_local(call_on(client.clone(), base.clone(), caller, Rc::clone(&counts)));
    }
    sleep(Duration::from_millis(300)).await;
    scene().await?;
    sleep(Duration::from_millis(300)).await;
    counts.ended.set(true);
    while let Some(caller) = callers.join_next().await {
        caller??;
    }
    println!(
        "{name:<40} GET and keyed POST: {} of {} failed; other POSTs: {} of {}; {} retries",
        counts.repeatable_failed.get(),
        counts.repeatable.get(),
        counts.once_failed.get(),
        counts.once.get(),
        counts.retries.get()
    );
    Ok(counts.repeatable_failed.get() == 0 && counts.repeatable.get() > 0)
}

async fn check(program: &str) -> Result<bool, BoxError> {
    let ledger = Ledger::new();
    let (mut servers, mut ports, without) = (Vec::new(), Vec::new(), Faults::<WireFault>::new(Script::default()));
    for number in 0..2 {
        let script = Script::new([Step::new(Reply::default()).delay(ANSWERS).always()]);
        let server = Server::http1(Faults::in_cluster(script, format!("server {number}"), &ledger)).await?;
        ports.push(without.relay(server.address()).await?);
        servers.push(server);
    }
    let proxy = Proxy::start(program, &ports).await?;
    let mut holds = true;
    let short = || sleep(Duration::from_millis(300));

    let base = format!("http://{}/down", proxy.http1);
    holds &= scene("back ends go down and come back", base, false, async || {
        ports[0].close().await?;
        short().await;
        // haproxy itself answers with 503 now.
        ports[1].close().await?;
        short().await;
        ports[0].open()?;
        short().await;
        Ok(ports[1].open()?)
    })
    .await?;

    for (name, address, http2) in [("HTTP/1.1", proxy.http1, false), ("HTTP/2", proxy.http2, true)] {
        // A path of its own for each request shows repeats.
        let base = format!("http://{address}/{}", if http2 { "http2" } else { "http1" });
        holds &= scene(&format!("five reloads, {name}"), base, http2, async || {
            for _ in 0..5 {
                proxy.reload().await?;
                short().await;
            }
            Ok(())
        })
        .await?;
    }
    proxy.stop().await?;

    if let Err(broken) = ledger.check(Rule::NoUnsafeRepeat) {
        eprintln!("{broken}");
        holds = false;
    }
    println!("{} requests reached the back ends", ledger.arrivals().len());
    println!("{}", if holds { "all of it holds" } else { "not all of it holds" });
    Ok(holds)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<ExitCode, BoxError> {
    let program = std::env::args().nth(1).ok_or("usage: reattempt-haproxy-check PROGRAM")?;
    let holds = LocalSet::new().run_until(check(&program)).await?;
    Ok(if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
