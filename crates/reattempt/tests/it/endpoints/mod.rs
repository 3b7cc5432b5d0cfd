//! Tests of several servers behind one client: which of them get attempts, and what discovery does.

mod abuse;
mod any;
mod attempts;
mod bad_input;
mod changes;
mod discovery;
mod frames;
mod hedges;
mod in_flight;
mod loopback;
mod moves;
mod seen;
mod standard;
pub(crate) mod support;
mod untried;
mod urls;
