//! CONNECT through a real squid, to a target that is dead and comes up, and to one that lives.
//!
//! A refused CONNECT has sent nothing to the target, so every request is retried, whatever its method.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::rt::TokioExecutor;
use reattempt::report::ReportSlot;
use reattempt::schedule::Constant;
use reattempt::{ReplayBody, RetryLayer, RetryPolicy};
use reattempt_cluster_check::process::{Cluster, Setup};
use tokio::time::{sleep, timeout};
use tower::{BoxError, Layer, ServiceExt};

use crate::WORK;
use crate::calls::Kind;
use crate::clients::request;
use crate::proxy::Proxy;

/// Reached only by a hanging call.
const HANGS: Duration = Duration::from_secs(30);

/// The time between two attempts.
const DELAY: Duration = Duration::from_millis(200);

/// Returns `true` if calls to both targets end as they must.
pub(crate) async fn check(program: &str) -> Result<bool, BoxError> {
    let mut cluster = Cluster::new("squid", Setup { https: false, work: WORK })?;
    let target = cluster.start().await?;
    let proxy = Proxy::start("squid", program, &[]).await?;
    let tunnel = Tunnel::new(format!("http://{}", proxy.http1).parse()?, HttpConnector::new());
    let policy = RetryPolicy::http().backoff(Constant::new(DELAY)).max_attempts(100);
    let layer = RetryLayer::new(policy);
    let mut holds = true;
    for (number, kind) in (0..).zip([Kind::Safe, Kind::Once]) {
        for is_dead in [false, true] {
            // A new client has no connection from before.
            let client: Client<_, ReplayBody<Full<Bytes>>> =
                Client::builder(TokioExecutor::new()).build(tunnel.clone());
            let (client, slot) = (layer.layer(client), ReportSlot::default());
            let request = request(target, kind, 2 * number + u64::from(is_dead), &slot)?.map(Full::new);
            if is_dead {
                cluster.kill(target).await?;
            }
            let call = async {
                let response = client.oneshot(request).await?;
                let status = response.status();
                response.into_body().collect().await?;
                Ok::<_, BoxError>(status)
            };
            let comes_up = async {
                if is_dead {
                    sleep(2 * DELAY).await;
                    cluster.start_at(target).await?;
                }
                Ok::<_, BoxError>(())
            };
            let (status, up) = timeout(HANGS, async { tokio::join!(call, comes_up) }).await?;
            up?;
            let report = slot.take();
            let retries = report.as_ref().map_or(0, |report| report.retries());
            println!("{kind:?} through squid, dead target {is_dead}: {status:?}, {retries} retries");
            if let Some(report) = report {
                println!("  {report}");
            }
            holds &= status.is_ok_and(|status| status.is_success()) && (retries > 0) == is_dead;
        }
    }
    let mut carried_out = cluster.ledger()?;
    carried_out.sort_unstable();
    Ok(holds && carried_out == [2, 3])
}
