//! Calls of a tonic client under the retry layer, against a service that answers by a script under a
//! paused clock. The names carry the ids of the rules that they test.

mod any_answer;
mod attempts;
mod backoff;
mod bodies;
mod budget;
mod buffers;
mod calls;
mod credentials;
mod deadlines;
mod hedged;
mod hostile;
mod inbound;
mod lost;
mod peek_trailers;
pub(crate) mod reset;
mod sorting;
pub(crate) mod support;
