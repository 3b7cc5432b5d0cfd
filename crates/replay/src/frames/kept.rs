//! The two forms of a frame: kept, and returned by a reader.

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use http_body::Frame;

use crate::error::{BoxError, ReplayError};
use crate::memory::{LEAST_CHARGE, least_charge};
use crate::progress::source_error;

/// A kept frame, or an error instead of one. The type is no larger than `Bytes`.
#[derive(Clone)]
pub(crate) enum KeptFrame {
    Data(Bytes),
    Other(Box<Other>),
    /// Data in the chunk that is being filled.
    Filling,
}

/// The last frame of a body, or its error.
#[derive(Clone)]
pub(crate) enum Other {
    Trailers(HeaderMap),
    Failed(ReplayError),
}

impl KeptFrame {
    /// Returns the charge for keeping the frame, in bytes.
    #[inline]
    pub(crate) fn charge(&self) -> usize {
        match self {
            KeptFrame::Data(data) => least_charge(data.len()),
            KeptFrame::Other(other) => match &**other {
                Other::Trailers(trailers) => trailers.iter().fold(CHARGE_OF_FIELD, |sum, (name, value)| {
                    sum.saturating_add(name.as_str().len() + value.len() + CHARGE_OF_FIELD)
                }),
                Other::Failed(_) => LEAST_CHARGE,
            },
            KeptFrame::Filling => 0,
        }
    }
}

/// The charge for a trailer field in addition to its name and value, about the size of its map entry.
const CHARGE_OF_FIELD: usize = 128;

/// Copies trailers. The copy shares no buffer with them, because values are often small slices of a large buffer. A
/// name is never a slice of another buffer.
fn copy_of(trailers: &HeaderMap) -> HeaderMap {
    let mut copy = trailers.clone();
    for value in copy.values_mut() {
        if let Ok(mut own) = HeaderValue::from_bytes(value.as_bytes()) {
            own.set_sensitive(value.is_sensitive());
            *value = own;
        }
    }
    copy
}

/// A reader's next frame, or its error. Moving a frame is costly because it has room for trailers, so all frames except
/// data are boxed.
pub(crate) enum Next {
    Data(Bytes),
    Other(Box<Frame<Bytes>>),
    Failed(ReplayError),
}

impl Next {
    /// Converts the result of polling the caller's body.
    #[inline]
    pub(crate) fn of<E: Into<BoxError>>(answer: Option<Result<Frame<Bytes>, E>>) -> Option<Self> {
        Some(match answer? {
            Ok(frame) => match frame.into_data() {
                Ok(data) => Next::Data(data),
                Err(other) => Next::Other(Box::new(other)),
            },
            Err(error) => Next::Failed(source_error(error)),
        })
    }

    /// Copies data shorter than `below`.
    pub(crate) fn copied(self, below: usize) -> Self {
        match self {
            Next::Data(data) if data.len() < below => Next::Data(Bytes::copy_from_slice(&data)),
            next => next,
        }
    }

    /// Converts the frame into its kept form. Returns `None` for unknown kinds of frames.
    #[inline]
    pub(crate) fn to_kept(&self) -> Option<KeptFrame> {
        let other = match self {
            Next::Data(data) => return Some(KeptFrame::Data(data.clone())),
            Next::Other(frame) => Other::Trailers(copy_of(frame.trailers_ref()?)),
            Next::Failed(error) => Other::Failed(error.clone()),
        };
        Some(KeptFrame::Other(Box::new(other)))
    }
}

impl From<KeptFrame> for Next {
    #[inline]
    fn from(kept: KeptFrame) -> Self {
        match kept {
            KeptFrame::Data(data) => Next::Data(data),
            KeptFrame::Other(other) => match *other {
                Other::Trailers(trailers) => Next::Other(Box::new(Frame::trailers(trailers))),
                Other::Failed(error) => Next::Failed(error),
            },
            // Unreachable: a frame is sealed before it is taken out.
            KeptFrame::Filling => Next::Data(Bytes::new()),
        }
    }
}
