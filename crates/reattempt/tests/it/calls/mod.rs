//! Tests of whole calls through the public API, against a scripted server under a paused clock.

mod auto_traits;
mod bodies;
mod boxed;
mod budget;
mod cancelling;
mod classifying;
mod cloned;
mod confirming;
mod credentials;
mod deadlines;
mod draining;
mod errors;
mod handshakes;
mod hearing;
mod hook;
mod instances;
mod keys;
mod memory;
mod nesting;
mod no_runtime;
mod observing;
mod options;
mod order;
mod passing;
mod polling;
mod readiness;
mod renewing;
mod reports;
mod rules;
mod safety;
mod send;
mod sharing;
mod shedding;
mod stock;
mod timeouts;

pub(crate) use reattempt_testing_layers::calls as support;
