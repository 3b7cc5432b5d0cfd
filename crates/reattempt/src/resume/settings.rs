//! The settings that all bodies of a layer share.

use crate::protocol::Http;

/// The settings of resumes, which are those of an HTTP retry policy.
pub(super) type Settings<Backoff, B> = crate::call::settings::Settings<Http, Backoff, B>;
