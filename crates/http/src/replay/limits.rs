//! How much of the request bodies may be kept.

use std::borrow::Cow;

use super::memory::{Allowance, least_charge};
use super::{ReplayCharge, ReplayMemory};

/// What of a request body may be kept for another attempt.
///
/// A body that outgrows either limit is sent once, as if nothing had been kept, and is then not
/// retried. Each data frame counts with its length, but with at least 32 bytes, so that endless
/// empty or tiny frames are bounded as well; trailers count with the length of their names and
/// values, and 32 bytes for each. Data that was read ahead counts until a reader gets it, if there is
/// room for it, and that of a body of one buffer as long as any reader has yet to; any other frame
/// counts from when it was read by one reader for as long as it is still to be read by another.
///
/// ```
/// use reattempt_http::{ReplayLimits, ReplayMemory};
/// let limits = ReplayLimits::default().per_call(1024 * 1024).memory(ReplayMemory::new(256 << 20));
/// # let _ = limits;
/// ```
#[derive(Debug, Clone)]
pub struct ReplayLimits {
    per_call: usize,
    memory: ReplayMemory,
}

impl ReplayLimits {
    /// The most bytes kept of one body. Default 64 KiB: enough for nearly every body that an
    /// interface between services takes, little enough that it need not be thought about. 0 keeps
    /// no body, and `usize::MAX` sets no limit but the memory.
    pub fn per_call(self, bytes: usize) -> Self {
        Self { per_call: bytes, ..self }
    }

    /// The bound over all bodies kept at one time. Default 64 MiB, shared by the clones of these
    /// limits and by nobody else.
    pub fn memory(self, memory: ReplayMemory) -> Self {
        Self { memory, ..self }
    }

    /// The same limits for calls to several destinations, each of which is to have a share of the memory: see
    /// [`for_call`](Self::for_call).
    #[must_use = "the limits are the same, and their memory is shared out from now on"]
    pub fn by_destination(self) -> Self {
        self.memory.require_shares();
        self
    }

    /// Returns the limits of one call. Its destination is computed only once a quarter of the memory is in
    /// use, for it can then add at most another quarter to what is taken. Bodies kept by the limits
    /// themselves add nothing from then on.
    ///
    /// ```
    /// use reattempt_http::{ReplayLimits, ReplayMemory};
    ///
    /// let memory = ReplayMemory::new(400);
    /// let limits = ReplayLimits::default().memory(memory.clone()).by_destination();
    /// let first = limits.for_call(|| unreachable!("nothing is in use")).charge(100);
    /// let hanging = limits.for_call(|| "one.example".into());
    /// let second = hanging.charge(60);
    /// assert!(first.is_some() && second.is_some());
    /// assert!(hanging.charge(60).is_none(), "that would be more than another quarter");
    /// assert!(limits.for_call(|| "two.example".into()).charge(60).is_some());
    /// ```
    #[inline]
    pub fn for_call<'a>(&self, destination: impl FnOnce() -> Cow<'a, str>) -> Cow<'_, Self> {
        if self.memory.is_shared_out() {
            Cow::Owned(self.with_share(&destination()))
        } else {
            Cow::Borrowed(self)
        }
    }

    #[cold]
    fn with_share(&self, destination: &str) -> Self {
        Self { per_call: self.per_call, memory: self.memory.share(destination) }
    }

    /// Takes memory for a body of `bytes` that somebody keeps otherwise than in a
    /// [`ReplayBody`](super::ReplayBody): `None` when it does not fit one of the limits.
    pub fn charge(&self, bytes: usize) -> Option<ReplayCharge> {
        let fits = bytes <= self.per_call;
        fits.then(|| ReplayCharge::new(&self.memory, bytes)).flatten()
    }

    /// Whether they allow no byte a call, so that only empty bodies can be sent again.
    pub fn keeps_nothing(&self) -> bool {
        self.per_call == 0
    }

    /// Whether a body of `length` bytes may be kept as far as one call is concerned.
    #[inline]
    pub(super) fn allow(&self, length: u64) -> bool {
        usize::try_from(length).is_ok_and(|length| least_charge(length) <= self.per_call)
    }

    /// Whether anything is left of the memory.
    #[inline]
    pub(super) fn has_room(&self) -> bool {
        self.memory.has_room()
    }

    /// Takes `bytes` of the memory.
    #[inline]
    pub(super) fn take(&self, bytes: usize) -> Option<ReplayMemory> {
        self.memory.take(bytes).then(|| self.memory.clone())
    }

    /// The allowance of one body.
    pub(super) fn allowance(&self) -> Allowance {
        Allowance::new(self.per_call, self.memory.clone())
    }
}

impl Default for ReplayLimits {
    fn default() -> Self {
        Self { per_call: 64 * 1024, memory: ReplayMemory::default() }
    }
}
