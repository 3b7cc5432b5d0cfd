//! The file that servers send, whole or from the byte that a resume asks for.
//!
//! Each server has a file with the same tags but other bytes, so a body that joins two of them differs from both. Each
//! path has other tags: where a redirect leads to a file with the same tag and length, it counts as the same, as with
//! signed URLs.

use http::request::Parts;
use http::{HeaderMap, Uri};

use super::cluster::Place;

/// The number of bytes of every file.
pub(crate) const LENGTH: usize = 64;
/// The response header with the name of the file.
pub(crate) const NAME: &str = "x-file";

/// Returns the name of the file that a server has at this address.
pub(crate) fn name(place: Place, uri: &Uri, version: u8) -> String {
    format!("{place:?} {} {version}", uri.path())
}

/// Returns the bytes of a file.
pub(crate) fn content(name: &str) -> Vec<u8> {
    let hash = |seed: u32| name.bytes().fold(seed, |sum, byte| sum.wrapping_mul(16_777_619) ^ u32::from(byte));
    let mut state = hash(2_166_136_261);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    (0..LENGTH).map(|_| next()).collect()
}

/// Returns the tag of a version of the file at this address.
pub(crate) fn tag(uri: &Uri, version: u8) -> String {
    format!("\"{version} {}\"", uri.path())
}

/// Returns the first byte that the request asks for, whatever the version.
pub(crate) fn first_byte(request: &HeaderMap) -> Option<usize> {
    let range = request.get("range")?.to_str().ok()?;
    range.strip_prefix("bytes=")?.strip_suffix('-')?.parse().ok()
}

/// Returns the first byte of the response: 0 for the whole file, which a server also sends if its version is another.
pub(crate) fn start(request: &Parts, version: u8) -> usize {
    let tag = tag(&request.uri, version);
    let is_same = request.headers.get("if-range").is_some_and(|wanted| *wanted == *tag);
    first_byte(&request.headers).filter(|first| is_same && *first < LENGTH).unwrap_or(0)
}
