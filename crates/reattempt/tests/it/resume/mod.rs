//! Tests of resumed bodies over a scripted service, under a paused clock.

mod answers;
mod any;
mod auto_traits;
mod breaks;
mod limits;
mod requests;
mod stacks;
mod support;
