//! Tests of every named profile: against the table in its own docs, against the source's figures, and in a policy.

mod docs;
mod envelopes;
mod policies;
mod services;
mod streaming;
mod support;
mod tables;
