//! A request that is no message of HTTP.

use reattempt::RetryLayer;
use tower::ServiceBuilder;

async fn client(_: String) -> Result<String, std::io::Error> {
    Ok(String::new())
}

fn main() {
    let client = ServiceBuilder::new().layer(RetryLayer::http()).service_fn(client);
    let _ = client.send(String::new());
}
