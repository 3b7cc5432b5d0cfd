//! The part of an upload that its attempts share: the way to open it.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Body;

use super::UploadError;
use super::checked::Checked;
use crate::error::BoxError;

/// An opened body, whose length is checked.
pub(super) type Opened = Pin<Box<dyn Body<Data = Bytes, Error = UploadError> + Send + Sync>>;

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
    pub(super) fn new<Fut, B>(length: Option<u64>, open: impl Fn() -> Fut + Send + Sync + 'static) -> Self
    where
        Fut: Future<Output = Result<B, UploadError>> + Send + 'static,
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let open = move || {
            let opening = open();
            Box::pin(async move { Ok(Box::pin(Checked::new(opening.await?, length)?) as Opened) }) as Opening
        };
        Self { length, open_within: OPEN_WITHIN, open: Arc::new(open) }
    }

    pub(super) fn open(&self) -> Opening {
        (self.open)()
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
