//! A witness, which proves that a guard refused the fallback's original request and not a later hop or a copy.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

use http::Extensions;

use super::AttemptNumber;
use crate::call::request_view::RequestView;

/// The fallback's handle to the witness in its request's extensions.
#[derive(Debug, Clone, Default)]
pub struct Testimony(Arc<WitnessState>);

#[derive(Debug, Default)]
struct WitnessState {
    /// The number of copies that other services have made.
    copies: AtomicIsize,
    refused: AtomicBool,
    /// `true` if an earlier attempt may have been processed.
    unproven: AtomicBool,
}

impl Testimony {
    /// Adds a witness to the request's extensions, unless an outer fallback has already done so. It proves nothing for
    /// the later attempts of an outer retry layer, because an earlier one may have been processed.
    pub fn call(extensions: &mut Extensions) -> Self {
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

    /// Returns a handle that proves nothing, for requests that cannot contain a witness.
    pub fn void() -> Self {
        let this = Self::default();
        this.0.unproven.store(true, Ordering::Relaxed);
        this
    }

    /// Returns a handle on a request's witness, if an outer fallback added one.
    pub fn of(request: RequestView<'_>) -> Option<Self> {
        request.extension::<Witness>().map(|witness| witness.0.clone())
    }

    /// Records that a guard refused the request.
    pub fn refuse(&self) {
        self.0.refused.store(true, Ordering::Relaxed);
    }

    /// Returns `true` if none of the attempts before the last one can have been processed.
    pub fn is_proven(&self) -> bool {
        !self.0.unproven.load(Ordering::Relaxed)
    }

    /// Returns `true` if a guard refused the request, and no copy can have been sent.
    pub fn is_refused(&self) -> bool {
        self.0.refused.load(Ordering::Relaxed) && self.0.copies.load(Ordering::Relaxed) == 0
    }
}

/// The marker in a request's extensions, which counts its own clones.
///
/// A service that follows redirects sends later hops with a copy of the extensions, or without any. If the marker was
/// cloned, a copy of the request may have been sent.
#[derive(Debug)]
pub(crate) struct Witness(Testimony);

impl Clone for Witness {
    fn clone(&self) -> Self {
        self.0.0.copies.fetch_add(1, Ordering::Relaxed);
        Self(self.0.clone())
    }
}

/// Prepares the witness for an attempt, and subtracts the copies that layers of this crate made for it. `unproven` is
/// `true` if an earlier attempt may have been processed.
#[inline]
pub fn attend(extensions: &Extensions, copies: isize, unproven: bool) {
    if !extensions.is_empty() {
        attend_any(extensions, copies, unproven);
    }
}

// Not inlined, because most requests have no extensions.
#[inline(never)]
fn attend_any(extensions: &Extensions, copies: isize, unproven: bool) {
    if let Some(Witness(testimony)) = extensions.get() {
        testimony.0.copies.fetch_sub(copies, Ordering::Relaxed);
        testimony.0.unproven.fetch_or(unproven, Ordering::Relaxed);
        testimony.0.refused.store(false, Ordering::Relaxed);
    }
}
