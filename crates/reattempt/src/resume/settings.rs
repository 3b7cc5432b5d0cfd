//! The settings that all bodies of a layer share.

use crate::protocol::Http;

/// The settings of resumes: those of a policy over HTTP.
pub(super) type Settings<Backoff, B> = crate::call::settings::Settings<Http, Backoff, B>;
