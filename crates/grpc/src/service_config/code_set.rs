//! Sets of status codes, used in policies.

use std::fmt;

use crate::Code;

/// A set of gRPC status codes.
///
/// ```
/// # use reattempt_grpc::{Code, CodeSet};
/// let codes = CodeSet::from_iter([Code::Unavailable, Code::Aborted]);
/// assert!(codes.contains(Code::Aborted) && !codes.contains(Code::Internal));
/// assert_eq!(format!("{codes:?}"), "{Aborted, Unavailable}");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct CodeSet {
    /// One bit per code, at the position of the code's number.
    bits: u32,
}

impl CodeSet {
    /// Returns `true` if the code is in the set.
    #[inline]
    pub const fn contains(self, code: Code) -> bool {
        self.bits & bit(code) != 0
    }

    /// Returns `true` if the set is empty.
    pub const fn is_empty(self) -> bool {
        self.bits == 0
    }

    /// Returns the codes in the set, in the order of their numbers.
    pub fn iter(self) -> impl Iterator<Item = Code> {
        (0..=16).map(Code::from_number).filter(move |code| self.contains(*code))
    }
}

const fn bit(code: Code) -> u32 {
    1 << code.number()
}

impl FromIterator<Code> for CodeSet {
    fn from_iter<I: IntoIterator<Item = Code>>(codes: I) -> Self {
        Self { bits: codes.into_iter().fold(0, |bits, code| bits | bit(code)) }
    }
}

impl fmt::Debug for CodeSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}
