//! Tests of guards in stacks of several layers: refusals, time limits and connections that end.

mod earlier_hop;
mod orders;
mod restarts;
mod stacks;
mod standard;
mod standard_deadlines;
mod standard_hedges;
mod uploads;
mod whose_time;

pub(crate) use reattempt_testing_layers::guard as support;
