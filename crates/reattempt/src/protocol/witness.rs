//! The witness that a guard refused the very request that a fallback sent, and not a later hop or a copy of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use http::Extensions;

use super::AttemptNumber;
use crate::call::request_view::RequestView;

/// The fallback's share of the witness in its request.
#[derive(Debug, Clone, Default)]
pub struct Testimony(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// The copies that others have made.
    copies: AtomicIsize,
    refused: AtomicBool,
    /// `true` if an earlier attempt may have been processed.
    unproven: AtomicBool,
}

impl Testimony {
    /// Puts the witness into the extensions of a request, unless a fallback outside has done so. It proves nothing
    /// about a further attempt of a retry layer outside, because an earlier one may have been processed.
    pub(crate) fn call(extensions: &mut Extensions) -> Self {
        if let Some(witness) = extensions.get::<Witness>() {
            return witness.0.clone();
        }
        let this = match extensions.get::<AttemptNumber>() {
            Some(_) => Self::void(),
            None => Self::default(),
        };
        extensions.insert(Witness(this.clone()));
        this
    }

    /// Returns a testimony that proves nothing, as for a request that cannot carry its witness.
    pub(crate) fn void() -> Self {
        let this = Self::default();
        this.0.unproven.store(true, Ordering::Relaxed);
        this
    }

    /// Returns the testimony of the witness in a request, if a fallback around the layer has put one there.
    pub(crate) fn of(request: RequestView<'_>) -> Option<Self> {
        request.extension::<Witness>().map(|witness| witness.0.clone())
    }

    /// Records that a guard has refused the request.
    pub(crate) fn refuse(&self) {
        self.0.refused.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if no attempt before the last one can have been processed.
    pub(crate) fn is_proven(&self) -> bool {
        !self.0.unproven.load(Ordering::Relaxed)
    }

    /// Returns `true` if a guard has refused the request, and no copy of it can have been sent.
    pub(crate) fn is_refused(&self) -> bool {
        self.0.refused.load(Ordering::Relaxed) && self.0.copies.load(Ordering::Relaxed) == 0
    }
}

/// The mark of a request that was not copied.
///
/// A service that follows redirects sends a later hop with a copy of the extensions, or without them. A clone of this
/// mark is counted: a copy of the request may then have been sent.
#[derive(Debug)]
struct Witness(Testimony);

impl Clone for Witness {
    fn clone(&self) -> Self {
        self.0.0.copies.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

/// Prepares the witness of an attempt, and takes back the count of the copies that a layer of this crate has made for
/// it. An attempt before it is `unproven` if it may have been processed.
#[inline]
pub(crate) fn attend(extensions: &Extensions, copies: isize, unproven: bool) {
    if let Some(Witness(testimony)) = extensions.get() {
        testimony.0.copies.fetch_sub(copies, Ordering::Relaxed);
        testimony.0.unproven.fetch_or(unproven, Ordering::Relaxed);
        testimony.0.refused.store(false, Ordering::Relaxed);
    }
}
