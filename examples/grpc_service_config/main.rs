//! A gRPC service config from a JSON file on a tonic channel. The file determines for each method whether it is
//! retried, hedged or neither. A second config replaces it while the client runs.
//!
//! `cargo run --example grpc_service_config [FILE]`

mod server;

#[path = "../../tests/it/support/echo.rs"]
mod echo;

use echo::Text;
use echo::echo_client::EchoClient;
use futures_util::{TryStreamExt, stream};
use reattempt::grpc::service_config;
use reattempt::grpc::service_config::{ServiceConfig, ServiceConfigHandle, ServiceConfigLayer};
use reattempt::observe::Event;
use tonic::Status;
use tonic::transport::{Channel, Endpoint};
use tower::{BoxError, ServiceBuilder};

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/grpc_service_config/service_config.json");

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let own = std::env::args().nth(1);
    let file = own.as_deref().unwrap_or(FILE);
    // The error lists every mistake in the file with its position.
    let handle = ServiceConfigHandle::new(ServiceConfig::load(file)?);
    println!("The service config is {file}.");

    let server = server::Server::start().await?;
    let channel = Endpoint::from_shared(format!("http://{}", server.address))?.connect_lazy();
    let layer = ServiceConfigLayer::new(handle.clone())
        .retries(|policy| policy.observe(print))
        .hedges(|policy| policy.observe(print));
    let client = EchoClient::new(ServiceBuilder::new().layer(layer).service(channel));

    println!("\nSay fails twice with UNAVAILABLE. The file has a retry policy for it:");
    let said = say(client.clone()).await;
    let attempts_to_say = server.take_attempts();

    println!("\nRepeat does not answer its first attempt. The file has a hedging policy for it:");
    let repeated = repeat(client.clone()).await;
    let attempts_to_repeat = server.take_attempts();

    println!("\nGather fails with UNAVAILABLE. The file has no policy for it:");
    let gathered = gather(client.clone()).await;
    let attempts_to_gather = server.take_attempts();

    println!("\nAn update with mistakes changes nothing:");
    let mistakes = r#"{ "methodConfig": [{ "timeout": "1h", "waitForReady": "yes" }] }"#;
    if let Err(errors) = handle.update(ServiceConfig::parse(mistakes)) {
        println!("  {}", errors.to_string().replace('\n', "\n  "));
    }
    println!("\nAn update to {{}} takes the retry policy away, from the next call on:");
    handle.update(ServiceConfig::parse("{}"))?;
    server.fail_again();
    let said_again = say(client).await;
    let attempts_to_say_again = server.take_attempts();

    if own.is_none() {
        let outcomes = [said, repeated, gathered, said_again].map(|outcome| outcome.is_ok());
        assert_eq!(outcomes, [true, true, false, false]);
        let attempts = [attempts_to_say, attempts_to_repeat, attempts_to_gather, attempts_to_say_again];
        assert_eq!(attempts, [3, 2, 1, 1]);
    }
    Ok(())
}

type Client = EchoClient<service_config::Client<Channel>>;

async fn say(mut client: Client) -> Result<String, Status> {
    let answer = client.say(Text::new("hello")).await.map(|answer| answer.into_inner().text);
    shown(answer)
}

async fn repeat(mut client: Client) -> Result<String, Status> {
    let words = match client.repeat(Text::new("one two three")).await {
        Ok(words) => words.into_inner().map_ok(|word| word.text).try_collect().await,
        Err(status) => Err(status),
    };
    shown(words.map(|words: Vec<_>| words.join(", ")))
}

async fn gather(mut client: Client) -> Result<String, Status> {
    let messages = stream::iter(["one", "two"].map(Text::new));
    shown(client.gather(messages).await.map(|answer| answer.into_inner().text))
}

fn shown(outcome: Result<String, Status>) -> Result<String, Status> {
    match &outcome {
        Ok(text) => println!("  the caller has {text:?}"),
        Err(status) => println!("  the caller has {:?}, {:?}", status.code(), status.message()),
    }
    outcome
}

/// Prints the client's view of an attempt.
fn print(_: &str, event: &Event<'_>) {
    println!("  client: {event}");
}
