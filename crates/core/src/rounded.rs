//! A duration rounded for display, because most digits of 1.203456789 s are noise.

use core::fmt;
use core::time::Duration;

/// A duration that is displayed with three significant digits.
#[derive(Debug, Clone, Copy)]
pub struct Rounded(pub Duration);

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let Some(digits) = nanos.checked_ilog10() else { return f.write_str("0s") };
        let step = 10_u128.pow(digits.saturating_sub(2));
        let rounded = (nanos + step / 2) / step * step;
        write!(f, "{:?}", u64::try_from(rounded).map_or(self.0, Duration::from_nanos))
    }
}
