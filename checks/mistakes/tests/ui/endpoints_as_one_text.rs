//! The servers in one text.

use reattempt::endpoints::EndpointsLayer;

fn main() {
    let _ = EndpointsLayer::http("http://one.example,http://two.example");
}
