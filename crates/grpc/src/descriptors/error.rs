//! The error in a descriptor set.

use std::error::Error;
use std::fmt;

/// The reason why bytes are not a usable [`DescriptorSet`](crate::DescriptorSet).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum DescriptorSetError {
    /// The bytes are not protobuf's wire format.
    Malformed {
        /// The position of the error, in bytes from the start.
        position: usize,
        /// The mistake at this position.
        reason: Malformed,
    },
    /// The bytes contain no file, so they are hardly a `FileDescriptorSet`.
    NoFile,
    /// A method is described twice, with different levels.
    Contradiction {
        /// The path of the method, `/package.Service/Method`, up to its 200th character.
        path: String,
    },
    /// The paths of all methods are longer than 16 MiB together.
    TooLarge,
}

/// A mistake in protobuf's wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Malformed {
    /// A value ends after the end of its message.
    Truncated,
    /// A number has more than 64 bits.
    Varint,
    /// A field has the number 0, a number above 2^29, or an unknown kind.
    Tag,
    /// A group has no start or no end, or more than 100 of them are nested.
    Group,
    /// A name is not UTF-8.
    Text,
    /// A field of a descriptor has a value of another kind.
    Kind,
}

impl Malformed {
    pub(super) const fn at(self, position: usize) -> DescriptorSetError {
        DescriptorSetError::Malformed { position, reason: self }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Truncated => "a value is cut off",
            Self::Varint => "a number has more than 64 bits",
            Self::Tag => "no field starts here",
            Self::Group => "a group is not closed, or nested too deeply",
            Self::Text => "a name is not UTF-8",
            Self::Kind => "a field has a value of another kind",
        })
    }
}

impl fmt::Display for DescriptorSetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed { position, reason } => {
                write!(f, "the bytes are not a FileDescriptorSet: at byte {position}, {reason}")
            }
            Self::NoFile => f.write_str("the bytes describe no file, so they are not a FileDescriptorSet"),
            Self::Contradiction { path } => write!(f, "{path:?} is described twice, with different idempotency levels"),
            Self::TooLarge => f.write_str("the paths of all methods are longer than 16 MiB together"),
        }
    }
}

impl Error for DescriptorSetError {}
