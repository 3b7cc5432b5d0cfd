//! Ratios and factors in whole millionths.

pub(crate) const MILLION: u64 = 1_000_000;

/// Converts millionths to a number, for texts and warnings.
#[allow(clippy::cast_precision_loss, reason = "an approximation is enough")]
pub(crate) fn units(millionths: i64) -> f64 {
    millionths as f64 / MILLION as f64
}

/// Converts a number to millionths, clamped to the range. NaN is treated as `least`.
///
/// The range must lie between 0 and ten million.
#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "the range is within 0 and ten million"
)]
pub(crate) fn millionths(number: f64, least: f64, most: f64) -> u64 {
    let number = if number > least { number.min(most) } else { least };
    (number * MILLION as f64).round() as u64
}
