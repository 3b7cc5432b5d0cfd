//! The properties by which a file is recognized.

use std::fmt;
use std::time::{Duration, SystemTime};

/// The properties of a file that must stay the same from one attempt to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileState {
    pub(super) length: u64,
    pub(super) modified: Option<SystemTime>,
    pub(super) device_and_inode: Option<(u64, u64)>,
}

impl FileState {
    /// Returns the length in bytes.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Returns the time of the last modification, if the file system has it.
    pub fn modified(&self) -> Option<SystemTime> {
        self.modified
    }

    /// Returns the device and the inode, on Unix.
    pub fn device_and_inode(&self) -> Option<(u64, u64)> {
        self.device_and_inode
    }
}

impl fmt::Display for FileState {
    /// Writes the length, the modification time in seconds since 1970, and the inode.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.length)?;
        if let Some(modified) = self.modified {
            let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
            write!(f, ", modified at {}.{:09}", since.as_secs(), since.subsec_nanos())?;
        }
        match self.device_and_inode {
            Some((_, inode)) => write!(f, ", inode {inode}"),
            None => Ok(()),
        }
    }
}
