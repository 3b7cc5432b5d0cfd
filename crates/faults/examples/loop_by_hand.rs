//! A loop by hand around reqwest, under a server that loses an answer. The ledger shows the mistake.

use std::error::Error;

use reattempt_faults::{Reply, Rule, Server};

/// Sends a payment until it is answered: the mistake is that it may have been carried out before.
async fn pay(client: &reqwest::Client, url: &str) -> reqwest::Result<reqwest::Response> {
    match client.post(url).body("tea").send().await {
        Err(error) if error.is_request() => client.post(url).body("tea").send().await,
        outcome => outcome,
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::http1([Reply::reset()]).await?;
    let client = reqwest::Client::builder().no_proxy().retry(reqwest::retry::never()).build()?;
    let status = pay(&client, &server.url("/pay")).await?.status();
    println!("The caller sees {status}.");

    let violation = server.ledger().check(Rule::NoUnsafeRepeat).err().ok_or("the loop is safe")?;
    println!("The ledger sees more: {violation}");
    Ok(())
}
