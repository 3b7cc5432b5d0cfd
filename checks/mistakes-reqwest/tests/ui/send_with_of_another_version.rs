//! The request builder of another major version of reqwest.

use reattempt::{ReqwestExt, RetryLayer};
use tower::ServiceBuilder;

async fn order(http: reqwest::Client) {
    let client = ServiceBuilder::new().layer(RetryLayer::http()).service(http.clone());
    let _ = http.get("http://one.example/").send_with(&client).await;
}

fn main() {
    let _ = order;
}
