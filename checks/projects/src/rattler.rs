//! rattler_networking: the layer as the first middleware of its client.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use ::rattler_networking::authentication_storage::backends::memory::MemoryStorage;
use ::rattler_networking::mirror_middleware::Mirror;
use ::rattler_networking::{
    Authentication, AuthenticationMiddleware, AuthenticationStorage, LazyClient, MirrorMiddleware,
};
use http::StatusCode;
use http::header::{AUTHORIZATION, RETRY_AFTER};
use reattempt::RetryPolicy;
use reattempt_faults::{Reply, Server};
use reattempt_reqwest_middleware::astral::ReattemptMiddleware;
use reqwest_middleware_astral::ClientBuilder;
use url::Url;

use crate::{Failed, Outcome, assert_arrivals, assert_waited, soon};

/// Adds rattler's middlewares, which act on each attempt: credentials are read again, and another mirror is chosen.
fn with_rattlers(chain: ClientBuilder, mirrors: &[&Server]) -> Result<LazyClient, Failed> {
    let channel: Url = "http://127.0.0.1/channel/".parse()?;
    let mirrors: Result<Vec<_>, url::ParseError> = mirrors
        .iter()
        .map(|server| Ok(Mirror { url: server.url("/").parse()?, no_zstd: false, no_bz2: false, max_failures: None }))
        .collect();
    let mut storage = AuthenticationStorage::empty();
    storage.add_backend(Arc::new(MemoryStorage::new()));
    storage.store("127.0.0.1", &Authentication::BearerToken("token".into()))?;
    Ok(chain
        .with(MirrorMiddleware::from_map(HashMap::from([(channel, mirrors?)])))
        .with(AuthenticationMiddleware::from_auth_storage(storage))
        .build()
        .into())
}

fn plain() -> reqwest::Result<ClientBuilder> {
    Ok(ClientBuilder::new(reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build()?))
}

fn client(mirrors: &[&Server]) -> Result<LazyClient, Failed> {
    with_rattlers(plain()?.with(ReattemptMiddleware::new(RetryPolicy::http().backoff(soon()))), mirrors)
}

pub(crate) async fn run() -> Outcome {
    let busy = || Reply::status(StatusCode::SERVICE_UNAVAILABLE);
    const REPODATA: &str = "http://127.0.0.1/channel/noarch/repodata.json";

    // rattler's middlewares alone repeat nothing.
    let server = Server::http1([busy()]).await?;
    let response = with_rattlers(plain()?, &[&server])?.client().get(REPODATA).send().await?;
    assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_arrivals("without the layer, a GET after a 503", server.ledger(), &["GET"]);

    for (failure, reply) in [("a 503", busy()), ("a reset", Reply::reset())] {
        let server = Server::http1([reply, Reply::default()]).await?;
        client(&[&server])?.client().get(REPODATA).send().await?.error_for_status()?;
        assert_arrivals(&format!("a GET after {failure}"), server.ledger(), &["GET", "GET"]);
        assert!(server.ledger().arrivals().iter().all(|arrival| arrival.headers.contains_key(AUTHORIZATION)));
    }

    let server = Server::http1([busy().header(RETRY_AFTER, 1.into()), Reply::default()]).await?;
    client(&[&server])?.client().get(REPODATA).send().await?.error_for_status()?;
    assert_arrivals("a GET after a 503 with Retry-After: 1", server.ledger(), &["GET", "GET"]);
    assert_waited(server.ledger(), Duration::from_secs(1));

    // The retry goes to the other mirror.
    let (down, up) = (Server::http1([busy()]).await?, Server::http1([Reply::default()]).await?);
    client(&[&down, &up])?.client().get(REPODATA).send().await?.error_for_status()?;
    assert_arrivals("a GET, at the mirror with a 503", down.ledger(), &["GET"]);
    assert_arrivals("the same GET, at the other mirror", up.ledger(), &["GET"]);

    // The server may have stored the package.
    for (failure, reply) in [("a 503", busy()), ("a reset", Reply::reset())] {
        let server = Server::http1([reply]).await?;
        let sent = client(&[])?.client().post(server.url("/api/packages")).body("package").send().await;
        assert!(!sent.is_ok_and(|response| response.status().is_success()));
        assert_arrivals(&format!("a POST after {failure}"), server.ledger(), &["POST"]);
    }
    Ok(())
}
