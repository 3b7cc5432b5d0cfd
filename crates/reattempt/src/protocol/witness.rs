//! The witness that a guard refused the very request that a fallback sent, and not a later hop or a copy of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use http::Extensions;

/// The fallback's share of the witness in its request.
#[derive(Debug, Clone, Default)]
pub struct Testimony(Arc<State>);

#[derive(Debug, Default)]
struct State {
    /// The copies that others have made.
    copies: AtomicIsize,
    refused: AtomicBool,
}

impl Testimony {
    /// Puts the witness into the extensions of a request.
    pub(crate) fn call(extensions: &mut Extensions) -> Self {
        let this = Self::default();
        extensions.insert(Witness(this.clone()));
        this
    }

    /// Returns the testimony of the witness in these extensions.
    pub(crate) fn of(extensions: &Extensions) -> Option<Self> {
        extensions.get::<Witness>().map(|witness| witness.0.clone())
    }

    /// Records that a guard has refused the request.
    pub(crate) fn refuse(&self) {
        self.0.refused.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if a guard has refused the request, and nothing else can have been sent for it.
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
/// it. That layer sends the next attempt only after proof that the one before was not processed.
#[inline]
pub(crate) fn attend(extensions: &Extensions, copies: isize) {
    if let Some(Witness(testimony)) = extensions.get() {
        testimony.0.copies.fetch_sub(copies, Ordering::Relaxed);
        testimony.0.refused.store(false, Ordering::Relaxed);
    }
}
