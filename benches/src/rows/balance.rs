//! tower's balancer over three clients, by peak latency. The first estimate is 30 ms, and decays in 10 s.

use std::time::Duration;

use http::Request;
use tower::balance::p2c::Balance;
use tower::buffer::Buffer;
use tower::discover::ServiceList;
use tower::load::{CompleteOnResponse, PeakEwma};

use super::{awaited, fresh, running};
use crate::inner::MayRefuse;
use crate::requests::Body;
use crate::rows::Work;
use crate::rows::once::each_on;

type Balanced = Balance<ServiceList<Vec<PeakEwma<MayRefuse>>>, Request<Body>>;

/// Creates a balancer over three clients, of which so many are dead.
fn balance(dead: usize) -> Balanced {
    let default = Duration::from_millis(30);
    let client = |number| PeakEwma::new(MayRefuse(number < dead), default, 1e10, CompleteOnResponse::default());
    Balance::new(ServiceList::new::<Request<Body>>((0..3).map(client).collect::<Vec<_>>()))
}

pub(super) fn alone() -> Work {
    awaited(balance(0), fresh)
}

pub(super) fn buffered() -> Work {
    let runtime = running();
    let buffer = runtime.block_on(async { Buffer::new(balance(0), 64) });
    each_on(runtime, buffer, fresh)
}
