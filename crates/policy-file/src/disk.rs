//! The content of the file as text.

use std::fs::{self, File};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use crate::error::{ErrorKind, MOST_BYTES, PolicyFileError};

/// Reads a file for the [`reader`](crate::reader), as a [`PolicyFile`](crate::PolicyFile) does: at most 1 MiB of UTF-8
/// text, from a regular file.
///
/// # Errors
/// Returns the reason why the file cannot be read, or that it is too long, empty or not UTF-8.
pub fn read_text(path: &Path) -> Result<String, PolicyFileError> {
    let read = read(path).and_then(|bytes| text(&bytes).map(str::to_owned));
    read.map_err(|kind| PolicyFileError::new(path, kind))
}

/// Reads the file, up to one byte beyond the maximum size.
///
/// A directory, a pipe or a device is not opened, because opening a pipe could block forever.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ErrorKind> {
    let io = |error| ErrorKind::Io(Arc::new(error));
    let metadata = fs::metadata(path).map_err(io)?;
    if !metadata.is_file() {
        return Err(ErrorKind::NotAFile);
    }
    if metadata.len() > MOST_BYTES {
        return Err(ErrorKind::TooLong);
    }
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 1);
    File::open(path).map_err(io)?.take(MOST_BYTES + 1).read_to_end(&mut bytes).map_err(io)?;
    Ok(bytes)
}

/// Returns the text of the file's content.
pub(crate) fn text(bytes: &[u8]) -> Result<&str, ErrorKind> {
    if bytes.len() as u64 > MOST_BYTES {
        return Err(ErrorKind::TooLong);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = bytes.get(..error.valid_up_to()).unwrap_or_default();
        ErrorKind::NotText(1 + before.iter().filter(|byte| **byte == b'\n').count())
    })?;
    match text.strip_prefix('\u{feff}').unwrap_or(text).trim().is_empty() {
        true => Err(ErrorKind::Empty),
        false => Ok(text),
    }
}
