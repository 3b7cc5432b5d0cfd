//! What proves that a request was not processed, and what no longer does: by counting how often a POST
//! reached its handler.

mod redirects;
mod refused_stream;
use crate::support;
