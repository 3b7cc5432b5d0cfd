//! Tests of resumed bodies over a scripted service, under a paused clock.

mod answers;
mod any;
mod auto_traits;
mod breaks;
mod digest;
mod every_byte;
mod limits;
mod ranges;
mod requests;
mod stacks;
mod support;
