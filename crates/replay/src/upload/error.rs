//! The errors of a body that cannot be opened, or whose content is not what was announced.

use std::error::Error;
use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::FileState;

/// The error of an [`UploadBody`](super::UploadBody).
///
/// The client receives it inside its own error, so look for this type in the [`source`](Error::source) chain.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum UploadError {
    /// The body could not be opened. The original error is this error's source.
    Open(Arc<dyn Error + Send + Sync>),
    /// The body was not open after this time.
    NotOpenAfter(Duration),
    /// The opened body failed while it was read. The original error is this error's source.
    Read(Arc<dyn Error + Send + Sync>),
    /// The opened body has another length than the upload.
    Length {
        /// The length of the upload in bytes.
        expected: u64,
        /// The length of the opened body in bytes, or the bytes that it returned before it was given up.
        actual: u64,
    },
    /// The file is not the one that the upload was created from.
    Changed {
        /// The path of the file.
        path: PathBuf,
        /// The file when the upload was created.
        before: FileState,
        /// The file now.
        after: FileState,
    },
    /// The range does not lie within the file.
    Range {
        /// The range in bytes.
        range: Range<u64>,
        /// The length of the file in bytes.
        length: u64,
    },
    /// Opening or reading the body panicked.
    Panicked,
}

impl fmt::Display for UploadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UploadError::Open(error) => write!(f, "the body could not be opened: {error}"),
            UploadError::NotOpenAfter(limit) => write!(f, "the body was not open after {limit:?}"),
            UploadError::Read(error) => write!(f, "the body could not be read: {error}"),
            UploadError::Length { expected, actual } => {
                write!(f, "the opened body has {actual} bytes instead of {expected}")
            }
            UploadError::Changed { path, before, after } => {
                write!(f, "the file {} changed from {before} to {after}", path.display())
            }
            UploadError::Range { range, length } => {
                write!(f, "bytes {} to {} are not within a file of {length} bytes", range.start, range.end)
            }
            UploadError::Panicked => f.write_str("opening or reading the body panicked"),
        }
    }
}

impl Error for UploadError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            UploadError::Open(error) | UploadError::Read(error) => Some(&**error),
            _ => None,
        }
    }
}
