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
mod own_codes;
mod peek_trailers;
mod sorting;

pub(crate) use reattempt_testing_layers::{grpc as support, resets as reset};
