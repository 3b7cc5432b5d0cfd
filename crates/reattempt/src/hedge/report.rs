//! What a hedged call tells with its response.

/// How many attempts a call took, and which of them the response came from.
///
/// In the extensions of every response of a call of which more than one attempt was sent. For errors,
/// set an [observer](crate::HedgePolicy::observer).
///
/// ```
/// use reattempt::HedgeReport;
///
/// fn was_hedged<B>(response: &http::Response<B>) -> bool {
///     response.extensions().get::<HedgeReport>().is_some()
/// }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HedgeReport {
    pub(super) attempts: u32,
    pub(super) winner: u32,
}

impl HedgeReport {
    /// The attempts that were sent: at least 2.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// The number, from 1, of the attempt that the response came from; where all failed, of the one
    /// that ended last.
    pub fn winner(&self) -> u32 {
        self.winner
    }
}
