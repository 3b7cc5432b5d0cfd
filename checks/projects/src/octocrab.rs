//! octocrab: the layer below its builder, with GitHub's rules.

use std::sync::Arc;

use ::octocrab::service::middleware::base_uri::BaseUriLayer;
use ::octocrab::service::middleware::extra_headers::ExtraHeadersLayer;
use ::octocrab::{AuthState, Octocrab, OctocrabBuilder};
use http::header::{RETRY_AFTER, USER_AGENT};
use http::{HeaderName, HeaderValue, StatusCode};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use reattempt::{RetryPolicy, profile};
use reattempt_faults::{Reply, Server};
use serde_json::{Value, json};
use tower::{BoxError, ServiceBuilder};

use crate::{Outcome, assert_arrivals, soon};

const REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("x-ratelimit-reset");

fn client(server: &Server) -> Result<Octocrab, BoxError> {
    let policy = RetryPolicy::http().profile(profile::github()).backoff(soon());
    let http = Client::builder(TokioExecutor::new()).build_http();
    let built = OctocrabBuilder::new_empty()
        .with_service(ServiceBuilder::new().layer(policy).service(http))
        .with_layer(&BaseUriLayer::new(server.url("").parse()?))
        .with_layer(&ExtraHeadersLayer::new(Arc::new(vec![(USER_AGENT, HeaderValue::from_static("check"))])))
        .with_auth(AuthState::None)
        .build();
    Ok(built.unwrap_or_else(|never| match never {}))
}

pub(crate) async fn run() -> Outcome {
    let server = Server::http1([Reply::status(StatusCode::BAD_GATEWAY), json_reply(r#"{"login":"a"}"#)]).await?;
    let user: Value = client(&server)?.get("/user", None::<&()>).await?;
    assert_eq!(user["login"], "a");
    assert_arrivals("a GET after a 502", server.ledger(), &["GET", "GET"]);

    // GitHub may have opened the issue. octocrab's own policy repeats this POST.
    let issue = json!({ "title": "an issue" });
    let server = Server::http1([Reply::status(StatusCode::BAD_GATEWAY)]).await?;
    client(&server)?.post::<_, Value>("/repos/a/b/issues", Some(&issue)).await.unwrap_err();
    assert_arrivals("a POST after a 502", server.ledger(), &["POST"]);

    // The rate limits refuse before anything is done. The whole body is sent again.
    let forbidden = || Reply::status(StatusCode::FORBIDDEN);
    let secondary = forbidden().header(RETRY_AFTER, 0.into());
    let primary = forbidden().header(REMAINING, 0.into()).header(RESET, 1_000_000_000.into());
    for (limit, refused) in [("the secondary limit", secondary), ("the exhausted quota", primary)] {
        let server = Server::http1([refused, json_reply(r#"{"number":1}"#)]).await?;
        let opened: Value = client(&server)?.post("/repos/a/b/issues", Some(&issue)).await?;
        assert_eq!(opened["number"], 1);
        assert_arrivals(&format!("a POST after {limit}"), server.ledger(), &["POST", "POST"]);
        assert_eq!(server.ledger().arrivals()[1].body, issue.to_string().into_bytes());
    }

    let server = Server::http1([forbidden()]).await?;
    client(&server)?.get::<Value, _, _>("/repos/a/secret", None::<&()>).await.unwrap_err();
    assert_arrivals("a GET without permission", server.ledger(), &["GET"]);
    Ok(())
}

fn json_reply(body: &'static str) -> Reply {
    Reply::default().header(http::header::CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body)
}
