//! hf-hub: `retry()` around its calls, because its client takes neither a service nor a middleware.

use std::time::Duration;

use ::hf_hub::{HFClient, HFClientBuilder, HFError, HFResult, RepoTypeModel};
use http::header::RETRY_AFTER;
use http::{Method, StatusCode};
use reattempt::classify::{Classification, ServerHint, verdict_of_error, verdict_of_status};
use reattempt::operation::{Operations, RetryError};
use reattempt::schedule::Constant;
use reattempt::{RetryPolicy, Verdict, retry};
use reattempt_faults::{Reply, Server};

use crate::{Failed, Outcome, assert_arrivals, assert_waited, soon};

/// Classifies an error of the Hub. Only that of a 429 has the delay that the server asked for.
fn classified(error: &HFError) -> Classification {
    match error {
        HFError::RateLimited { retry_after, context } => {
            let hint = retry_after.map_or(ServerHint::None, ServerHint::After);
            verdict_of_status(context.status).with_hint(hint)
        }
        HFError::Http { context } => verdict_of_status(context.status).into(),
        HFError::Request { source, .. } => verdict_of_error(source).unwrap_or(Verdict::Permanent).into(),
        _ => Verdict::Permanent.into(),
    }
}

type Policy = RetryPolicy<Operations, Constant>;

/// Makes a call whose request has this method.
async fn retried<T, Sent>(policy: &Policy, method: Method, call: impl FnMut() -> Sent) -> HFResult<T>
where
    Sent: Future<Output = HFResult<T>>,
{
    // The client follows the redirects of renamed repositories.
    let call = retry(policy, call).classify(classified).repeatable(method.is_idempotent()).redirects_below(true);
    call.await.map_err(RetryError::into_error)
}

fn builder(server: &Server) -> Result<HFClientBuilder, reqwest::Error> {
    let plain = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build()?;
    Ok(HFClient::builder().client(plain).endpoint(server.url("")).token("token").cache_enabled(false))
}

/// A client without retries of its own.
fn client(server: &Server) -> Result<HFClient, Failed> {
    Ok(builder(server)?.retry_max_attempts(0).build()?)
}

pub(crate) async fn run() -> Outcome {
    let policy = RetryPolicy::operations().backoff(soon());
    let busy = || Reply::status(StatusCode::SERVICE_UNAVAILABLE);
    let model = || Reply::default().body(r#"{"id":"a/b"}"#);
    let created = || Reply::default().body(r#"{"url":"https://hub.example/a/b"}"#);

    for (failure, reply) in [("a 503", busy()), ("a reset", Reply::reset())] {
        let server = Server::http1([reply, model()]).await?;
        let hub = client(&server)?.model("a", "b");
        let info = retried(&policy, Method::GET, || hub.info().send()).await?;
        assert_eq!(info.id, "a/b");
        assert_arrivals(&format!("a GET after {failure}"), server.ledger(), &["GET", "GET"]);
    }

    let limited = Reply::status(StatusCode::TOO_MANY_REQUESTS).header(RETRY_AFTER, 1.into());
    let server = Server::http1([limited, model()]).await?;
    let hub = client(&server)?.model("a", "b");
    retried(&policy, Method::GET, || hub.info().send()).await?;
    assert_arrivals("a GET after a 429 with Retry-After: 1", server.ledger(), &["GET", "GET"]);
    assert_waited(server.ledger(), Duration::from_secs(1));

    // The Hub may have created the repository.
    for (failure, reply) in [("a 503", busy()), ("a reset", Reply::reset())] {
        let server = Server::http1([reply.clone()]).await?;
        let hub = client(&server)?;
        let create = || hub.create_repository().repo_id("a/b").repo_type(RepoTypeModel).send();
        retried(&policy, Method::POST, create).await.unwrap_err();
        assert_arrivals(&format!("a POST after {failure}"), server.ledger(), &["POST"]);

        let server = Server::http1([reply, created()]).await?;
        let hub = builder(&server)?.build()?;
        hub.create_repository().repo_id("a/b").repo_type(RepoTypeModel).send().await?;
        assert_arrivals(&format!("hf-hub's own, a POST after {failure}"), server.ledger(), &["POST", "POST"]);
    }

    // Six attempts, although the documentation of the builder states 3 retries.
    let server = Server::http1([busy(), busy(), busy(), busy(), busy(), busy()]).await?;
    let hub = builder(&server)?.retry_base_delay(Duration::from_millis(1)).build()?;
    hub.model("a", "b").info().send().await.unwrap_err();
    assert_arrivals("hf-hub's own, a GET in an outage", server.ledger(), &["GET"; 6]);
    Ok(())
}
