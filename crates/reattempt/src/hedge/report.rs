//! The report of a hedged call, in the extensions of its response.

/// The number of attempts of a call, and the one that the response came from.
///
/// Every response of a call with more than one attempt has it in its extensions. For errors, set an
/// [observer](crate::hedge::HedgePolicy::observe_with).
///
/// ```
/// use reattempt::hedge::HedgeReport;
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
    /// Returns the number of attempts that were sent: at least 2.
    pub fn attempts(&self) -> u32 {
        self.attempts
    }

    /// Returns the number, from 1, of the attempt that the response came from. If all failed, it is the one
    /// that ended last.
    pub fn winner(&self) -> u32 {
        self.winner
    }
}
