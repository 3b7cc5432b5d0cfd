//! The settings that all bodies of a layer share.

use reattempt_engine::Http;

/// The settings of resumes, which are those of an HTTP retry policy.
pub(super) type Settings<Backoff, B> = reattempt_engine::wall::Settings<Http, Backoff, B>;

/// The settings for the answers that continue a body.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// The maximum number of bytes that a part may repeat.
    pub(super) max_skip: u64,
    /// `true` if a date is no validator.
    pub(super) tags_only: bool,
    /// `true` if the digest of the joined body is compared with that of the first response.
    #[cfg(feature = "digest")]
    pub(super) verify_digest: bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            max_skip: 64 * 1024 * 1024,
            tags_only: false,
            #[cfg(feature = "digest")]
            verify_digest: false,
        }
    }
}
