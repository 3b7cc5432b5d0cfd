//! Tests of a tonic client's calls under the retry layer, against a scripted service under a paused clock. The names
//! contain the ids of the rules that they test.

mod any_answer;
mod attempts;
mod backoff;
mod bodies;
mod budget;
mod buffers;
mod calls;
mod credentials;
mod deadlines;
mod described;
mod hedged;
mod hostile;
mod inbound;
mod lost;
mod peek_trailers;
pub(crate) mod reset;
mod sorting;
pub(crate) mod support;
