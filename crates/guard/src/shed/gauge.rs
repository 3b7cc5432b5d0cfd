//! A server's load gauge, with a clock and random numbers.

use std::fmt;

use reattempt_control::{Advice, ServerLoad};
use reattempt_core::guard::Refused;
use reattempt_engine::schedule::CallRandom;

use crate::handle::now;

/// A gauge that counts a server's calls in the last two seconds.
pub struct Gauge(ServerLoad);

impl Gauge {
    pub(super) fn new() -> Self {
        Self(ServerLoad::new(now()))
    }

    pub(super) fn record_arrival(&self, retry: bool) {
        self.0.record_arrival(retry, now());
    }

    pub(crate) fn record_end(&self) {
        self.0.record_end(now());
    }

    pub(crate) fn advise(&self, refused: &Refused) -> Advice {
        self.0.advise(refused, now(), &mut CallRandom::unseeded(None))
    }
}

impl fmt::Debug for Gauge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.roll_buckets(now());
        self.0.fmt(f)
    }
}
