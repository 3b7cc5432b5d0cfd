//! A client of another major version of reqwest.

use reattempt::guard::{Bulkhead, GuardLayer};
use reattempt::{RetryLayer, check};
use reqwest::{Client, Request};
use tower::ServiceBuilder;

fn main() {
    let client = ServiceBuilder::new().layer(RetryLayer::http()).service(Client::new());
    check::<Request, _>(&client);
    let client = ServiceBuilder::new().layer(GuardLayer::http(Bulkhead::new(1))).service(Client::new());
    check::<Request, _>(&client);
}
