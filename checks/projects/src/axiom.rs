//! axiom-rs: `retry()` around its calls, because its client cannot be replaced.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ::axiom_rs::{Client, Error};
use http::{HeaderName, HeaderValue, StatusCode};
use reattempt::classify::{Classification, ServerHint, verdict_of_status};
use reattempt::operation::{Operations, RetryError};
use reattempt::schedule::Constant;
use reattempt::{RetryPolicy, Verdict, retry};
use reattempt_faults::{Reply, Server};
use serde_json::json;

use crate::{Outcome, assert_arrivals, soon};

const SCOPE: HeaderName = HeaderName::from_static("x-ratelimit-scope");
const LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

/// Classifies an error. Those of the connection are left to axiom-rs, which has retried them.
fn classified(error: &Error) -> Classification {
    match error {
        Error::RateLimitExceeded { limits, .. } => {
            let wait = SystemTime::from(limits.reset).duration_since(SystemTime::now()).unwrap_or_default();
            Verdict::throttled().with_hint(ServerHint::After(wait))
        }
        Error::Axiom(refused) => {
            StatusCode::from_u16(refused.status).map_or(Verdict::Permanent, verdict_of_status).into()
        }
        _ => Verdict::Permanent.into(),
    }
}

/// Makes a call that may be carried out twice, or not.
async fn retried<T, Sent>(
    policy: &RetryPolicy<Operations, Constant>,
    repeatable: bool,
    call: impl FnMut() -> Sent,
) -> Result<T, Error>
where
    Sent: Future<Output = Result<T, Error>>,
{
    // axiom-rs follows redirects.
    let call = retry(policy, call).classify(classified).repeatable(repeatable).redirects_below(true);
    call.await.map_err(RetryError::into_error)
}

fn client(server: &Server) -> Result<Client, Error> {
    Client::builder().no_env().with_url(server.url("")).with_token("xaat-token").build()
}

pub(crate) async fn run() -> Outcome {
    let policy = RetryPolicy::operations().backoff(soon());
    let busy = || Reply::status(StatusCode::SERVICE_UNAVAILABLE);
    let ingested = || {
        let status = json!({
            "ingested": 1, "failed": 0, "failures": [], "processedBytes": 9, "blocksCreated": 0, "walLength": 0,
        });
        Reply::default().body(status.to_string())
    };

    let server = Server::http1([busy(), Reply::default().body("[]")]).await?;
    let axiom = client(&server)?;
    let listed = retried(&policy, true, || async { axiom.datasets().list().await }).await?;
    assert!(listed.is_empty());
    assert_arrivals("a GET after a 503", server.ledger(), &["GET", "GET"]);

    // axiom-rs's own policy retries no status.
    let server = Server::http1([busy()]).await?;
    client(&server)?.datasets().list().await.unwrap_err();
    assert_arrivals("axiom-rs's own, a GET after a 503", server.ledger(), &["GET"]);

    let reset = SystemTime::now() + Duration::from_secs(1);
    let reset_seconds = reset.duration_since(UNIX_EPOCH)?.as_secs();
    let limited = Reply::status(StatusCode::TOO_MANY_REQUESTS)
        .header(SCOPE, HeaderValue::from_static("user"))
        .header(LIMIT, 1.into())
        .header(REMAINING, 0.into())
        .header(RESET, reset_seconds.into());
    let server = Server::http1([limited, Reply::default().body("[]")]).await?;
    let axiom = client(&server)?;
    retried(&policy, true, || async { axiom.datasets().list().await }).await?;
    assert_arrivals("a GET after a 429 with X-RateLimit-Reset", server.ledger(), &["GET", "GET"]);
    assert!(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() >= reset_seconds);

    // Axiom may have stored the events.
    let server = Server::http1([busy()]).await?;
    let axiom = client(&server)?;
    retried(&policy, false, || axiom.ingest("logs", [json!({ "a": 1 })])).await.unwrap_err();
    assert_arrivals("an ingest after a 503", server.ledger(), &["POST"]);

    // What stays open: axiom-rs itself repeats a POST whose answer is lost, and nothing turns that off.
    let server = Server::http1([Reply::reset(), ingested()]).await?;
    let axiom = client(&server)?;
    retried(&policy, false, || axiom.ingest("logs", [json!({ "a": 1 })])).await?;
    assert_arrivals("axiom-rs's own, an ingest after a reset", server.ledger(), &["POST", "POST"]);
    Ok(())
}
