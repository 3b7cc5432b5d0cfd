//! The part of an upload that its attempts share: the way to open it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, SizeHint};

use super::UploadError;
use crate::error::BoxError;

/// An opened body.
pub(super) type Opened = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// The future that opens a body.
pub(super) type Opening = Pin<Box<dyn Future<Output = Result<Opened, UploadError>> + Send>>;

/// The time limit for opening a body again, unless another one is set.
const OPEN_WITHIN: Duration = Duration::from_secs(10);

/// The way to open a body.
#[derive(Clone)]
pub(crate) struct Source {
    /// The length in bytes, or `None` if it is unknown.
    pub(super) length: Option<u64>,
    pub(super) open_within: Duration,
    open: Arc<dyn Fn() -> Opening + Send + Sync>,
}

impl Source {
    pub(super) fn new(length: Option<u64>, open: impl Fn() -> Opening + Send + Sync + 'static) -> Self {
        Self { length, open_within: OPEN_WITHIN, open: Arc::new(open) }
    }

    pub(super) fn open(&self) -> Opening {
        (self.open)()
    }

    /// Returns the length hint of the rest after `read` bytes.
    pub(super) fn rest(&self, read: u64) -> SizeHint {
        self.length.map_or_else(SizeHint::default, |length| SizeHint::with_exact(length.saturating_sub(read)))
    }

    /// Returns an error if the opened body states another length.
    pub(super) fn check(&self, opened: &Opened) -> Result<(), UploadError> {
        let Some(expected) = self.length else { return Ok(()) };
        let hint = opened.size_hint();
        let actual = match hint.upper() {
            _ if hint.lower() > expected => hint.lower(),
            Some(upper) if upper < expected => upper,
            _ => return Ok(()),
        };
        Err(UploadError::Length { expected, actual })
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Source")
            .field("length", &self.length)
            .field("open_within", &self.open_within)
            .finish_non_exhaustive()
    }
}
