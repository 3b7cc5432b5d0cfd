//! For the layers of this workspace, not covered by semver: the names of the engine that they share.
//!
//! A layer imports what users may write from its public path, and all else from here. So this page is the whole of what
//! the crates above know of the engine. Their versions are pinned to the engine's.

pub use crate::call::clock;
pub use crate::call::context::CallContext;
pub use crate::call::deadline::PASSED;
pub use crate::call::errors::{causes, chain};
pub use crate::call::observe::{add_observer, notify};
pub use crate::call::progress::{Granted, LastOutcome, Progress};
pub use crate::call::random::Seed;
pub use crate::call::redact::{redacted, redacted_input};
pub use crate::call::settings::Settings;

#[cfg(feature = "http")]
pub use self::http::*;

/// The names that only layers around HTTP clients need.
#[cfg(feature = "http")]
mod http {
    pub use crate::accessors::inner_accessors;
    pub use crate::call::attempt_terms::{AttemptTerms, arrived};
    pub use crate::call::body_verdict::BodyVerdict;
    pub use crate::call::cut_off::CutOff;
    pub use crate::call::layer_terms::LayerTerms;
    pub use crate::call::method::MethodOverrides;
    pub use crate::call::request_terms::Impatient;
    pub use crate::call::{frame, in_use, late_answers};
    pub use crate::protocol::attempt::{AttemptKind, KindWanted};
    pub use crate::protocol::errors::{is_refused_here, refusal_in, verdict_of_error};
    pub use crate::protocol::facts::attempt_terms;
    pub use crate::protocol::origin::Origin;
    pub use crate::protocol::proof::{fault_of_error, is_from_fallback};
    pub use crate::protocol::protocol_setters::protocol_setters;
    pub use crate::protocol::witness::{Testimony, attend};
    pub use crate::send::{Sending, send, send_method};
    pub use crate::shared::{Shared, send_next};

    #[cfg(feature = "reqwest")]
    pub use crate::protocol::reqwest::with_url;
}

/// The names that gRPC's part of a layer needs.
#[cfg(feature = "grpc")]
pub mod grpc {
    pub use crate::grpc::errors::{Unanswered, classify_error, code_of_error, fault};
    pub use crate::grpc::facts::PREVIOUS_ATTEMPTS;
    pub use crate::grpc::settings::grpc_setters;
}
