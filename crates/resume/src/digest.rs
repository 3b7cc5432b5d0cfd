//! The digest of a joined body (RFC 9530).

use std::error::Error;
use std::fmt;
use std::io::IoSlice;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Buf;
use http::{HeaderMap, StatusCode};
use sha2::{Digest as _, Sha256, Sha512};

/// The maximum number of slices in a frame that can be read.
const SLICES: usize = 16;

/// A digest that the first response states, and the digest of the bytes so far.
pub(super) struct Digest {
    expected: Box<str>,
    hasher: Hasher,
    /// `true` if a frame could not be read.
    unread: bool,
}

enum Hasher {
    Sha256(Sha256),
    Sha512(Sha512),
}

impl Digest {
    /// Returns the digest of the body that a response begins. `Content-Digest` is that of the body; `Repr-Digest` is
    /// that of the whole content, which is the body of a 200. Returns `None` if neither has a SHA-256 or SHA-512.
    pub(super) fn of(status: StatusCode, response: &HeaderMap) -> Option<Self> {
        let whole = (status == StatusCode::OK).then_some("repr-digest");
        ["content-digest"].into_iter().chain(whole).flat_map(|name| response.get_all(name)).find_map(|value| {
            // A value in base64 has neither a comma nor a semicolon.
            value.to_str().ok()?.split(',').find_map(Self::parse)
        })
    }

    /// Parses `sha-256=:BASE64:` or `sha-512=:BASE64:`.
    fn parse(member: &str) -> Option<Self> {
        let (algorithm, value) = member.split(';').next()?.trim().split_once('=')?;
        let expected = value.strip_prefix(':')?.strip_suffix(':')?.into();
        let hasher = match algorithm {
            "sha-256" => Hasher::Sha256(Sha256::new()),
            "sha-512" => Hasher::Sha512(Sha512::new()),
            _ => return None,
        };
        Some(Self { expected, hasher, unread: false })
    }

    pub(super) fn read(&mut self, data: &impl Buf) {
        let mut slices = [IoSlice::new(&[]); SLICES];
        let filled = data.chunks_vectored(&mut slices);
        let slices = slices.get(..filled).unwrap_or_default();
        self.unread |= slices.iter().map(|slice| slice.len()).sum::<usize>() != data.remaining();
        for slice in slices {
            match &mut self.hasher {
                Hasher::Sha256(hasher) => hasher.update(&**slice),
                Hasher::Sha512(hasher) => hasher.update(&**slice),
            }
        }
    }

    /// Compares the digests at the end of the body.
    pub(super) fn verify(self) -> Result<(), DigestMismatch> {
        let found = match self.hasher {
            Hasher::Sha256(hasher) => STANDARD.encode(hasher.finalize()),
            Hasher::Sha512(hasher) => STANDARD.encode(hasher.finalize()),
        };
        if !self.unread && *found == *self.expected {
            return Ok(());
        }
        let found = (!self.unread).then(|| found.into());
        Err(DigestMismatch { expected: self.expected, found })
    }
}

/// The error for a body whose digest is not the one in the response head. It comes in place of the last frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DigestMismatch {
    expected: Box<str>,
    found: Option<Box<str>>,
}

impl DigestMismatch {
    /// Returns the digest in the response head, in base64.
    pub fn expected(&self) -> &str {
        &self.expected
    }

    /// Returns the digest of the received bytes, in base64. `None` if a frame had more than 16 slices, so that it could
    /// not be read.
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }
}

impl fmt::Display for DigestMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let found = self.found.as_deref().unwrap_or("unknown");
        write!(f, "the digest of the body is {found}, and the response head has {}", self.expected)
    }
}

impl Error for DigestMismatch {}
