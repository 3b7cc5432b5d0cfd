//! async-openai: the layer in its HTTP service, with the rules of OpenAI's own clients.

use ::async_openai::Client;
use ::async_openai::config::OpenAIConfig;
use ::async_openai::error::OpenAIError;
use ::async_openai::middleware::HttpRequestFactory;
use ::async_openai::types::chat::{
    ChatCompletionRequestUserMessage, CreateChatCompletionRequest, CreateChatCompletionRequestArgs,
};
use http::{HeaderName, HeaderValue, StatusCode};
use reattempt::{CallOptions, Http, RetryPolicy, profile};
use reattempt_faults::{Reply, Server};
use reqwest::redirect;
use tower::{ServiceBuilder, ServiceExt, service_fn};

use crate::{Outcome, assert_arrivals, soon};

const COMPLETION: &str = r#"{"id":"1","object":"chat.completion","created":0,"model":"m","choices":[]}"#;
const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

fn client(server: &Server, http: Http) -> Result<Client<OpenAIConfig>, reqwest::Error> {
    let plain = reqwest::Client::builder().no_proxy().redirect(redirect::Policy::none()).retry(reqwest::retry::never());
    let policy = RetryPolicy::with(http.redirects_below(false)).profile(profile::openai()).backoff(soon());
    let retried = ServiceBuilder::new().layer(policy).service(plain.build()?);
    let service = service_fn(move |factory: HttpRequestFactory| {
        let retried = retried.clone();
        async move { retried.oneshot(factory.build().await?).await.map_err(OpenAIError::Reqwest) }
    });
    let config = OpenAIConfig::new().with_api_base(server.url("/v1")).with_api_key("key");
    Ok(Client::with_config(config).with_http_service(service))
}

pub(crate) async fn run() -> Outcome {
    let completed = || Reply::default().body(COMPLETION);
    let failed = || Reply::status(StatusCode::INTERNAL_SERVER_ERROR);

    let server = Server::http1([Reply::status(StatusCode::TOO_MANY_REQUESTS), completed()]).await?;
    client(&server, Http::new())?.chat().create(question()?).await?;
    assert_arrivals("a completion after a 429", server.ledger(), &["POST", "POST"]);

    // Its tokens may have been paid for. async-openai's own policy repeats this POST.
    let server = Server::http1([failed()]).await?;
    client(&server, Http::new())?.chat().create(question()?).await.unwrap_err();
    assert_arrivals("a completion after a 500", server.ledger(), &["POST"]);

    let repeatable = || {
        Http::new().options_for(|request| {
            request.path().ends_with("/chat/completions").then(|| CallOptions::new().repeatable(true))
        })
    };
    let server = Server::http1([failed(), completed()]).await?;
    client(&server, repeatable())?.chat().create(question()?).await?;
    assert_arrivals("a repeatable completion after a 500", server.ledger(), &["POST", "POST"]);

    let server = Server::http1([failed().header(SHOULD_RETRY, HeaderValue::from_static("false"))]).await?;
    client(&server, repeatable())?.chat().create(question()?).await.unwrap_err();
    assert_arrivals("the same, and the server asks for no retry", server.ledger(), &["POST"]);
    Ok(())
}

fn question() -> Result<CreateChatCompletionRequest, OpenAIError> {
    let message = ChatCompletionRequestUserMessage::from("why?");
    CreateChatCompletionRequestArgs::default().model("m").messages([message.into()]).build()
}
