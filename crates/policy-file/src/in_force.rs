//! The content in force, with its version.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use reattempt::guard::handle::now;

use crate::follow::Follow;
use crate::reader::Document;
use crate::state::States;

/// The version of the content in force.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Version {
    /// The number of contents that have been in force, with this one.
    pub(crate) number: u64,
    /// The FNV-1a hash of the content, which is the same in each process with this content.
    pub(crate) hash: u64,
    pub(crate) since: Duration,
}

/// The part of a file's state that a snapshot shows.
pub(crate) struct InForce {
    pub(crate) path: PathBuf,
    pub(crate) document: Arc<Document>,
    pub(crate) states: Arc<States>,
    pub(crate) followers: Vec<Arc<dyn Follow>>,
    pub(crate) version: Version,
}

impl Version {
    pub(crate) fn first(content: &[u8]) -> Self {
        Self { number: 1, hash: hash(content), since: now() }
    }

    pub(crate) fn next(self, content: &[u8]) -> Self {
        Self { number: self.number + 1, ..Self::first(content) }
    }
}

fn hash(content: &[u8]) -> u64 {
    content.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
