//! The functions that run a user's code where a destructor may run it.
//!
//! A panic that leaves a destructor while the thread unwinds aborts the process. A call may be dropped at any moment,
//! also while its caller unwinds, so code that a dropped call reaches runs through this module. In all other places, a
//! panic reaches the caller of the call concerned.
//!
//! Without the feature `std`, the functions only call the code, because nothing shows that a thread unwinds.

/// Returns `true` while the thread unwinds.
#[inline]
pub fn is_unwinding() -> bool {
    #[cfg(feature = "std")]
    return std::thread::panicking();
    #[cfg(not(feature = "std"))]
    return false;
}

/// Notifies an observer by calling `notification`. Does nothing while the thread unwinds.
///
/// ```
/// use reattempt_core::user_code;
///
/// let mut notified = false;
/// user_code::notify(|| notified = true);
/// assert!(notified);
/// ```
#[inline]
pub fn notify(notification: impl FnOnce()) {
    if !is_unwinding() {
        notification();
    }
}

/// Calls code that must run in any case, because it returns what a call holds: a place, or the tokens of a retry.
///
/// While the thread unwinds, a panic of the code ends here. The panic hook has then reported it.
#[inline]
pub fn release(code: impl FnOnce()) {
    if is_unwinding() {
        contain(code);
    } else {
        code();
    }
}

#[cold]
fn contain(code: impl FnOnce()) {
    #[cfg(feature = "std")]
    // The code owns what it captures, or its owner is being dropped.
    drop(std::panic::catch_unwind(std::panic::AssertUnwindSafe(code)));
    #[cfg(not(feature = "std"))]
    code();
}
