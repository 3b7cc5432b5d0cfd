//! The lines of the table, and the goal of each figure.

mod calls;
mod endpoints;
mod guards;
mod parts;

/// One line of the table: one of our contenders beside its peers.
#[derive(Debug)]
pub(crate) struct Line {
    /// The part of the table.
    pub(crate) part: &'static str,
    /// The row that has its figures.
    pub(crate) row: &'static str,
    /// The text of its first column.
    pub(crate) title: &'static str,
    /// Our contender.
    pub(crate) ours: &'static str,
    /// The limits of its figures.
    pub(crate) goals: &'static [Goal],
}

/// A figure of ours and its limit.
#[derive(Debug)]
pub(crate) struct Goal {
    pub(crate) figure: Figure,
    pub(crate) limit: Limit,
    /// The number that the limit should have. It is shown; only the limit is enforced.
    pub(crate) aim: Option<f64>,
}

impl Goal {
    const fn aim(self, aim: f64) -> Self {
        Self { aim: Some(aim), ..self }
    }
}

/// The quantity that is compared, always for one operation and above the bare contender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Figure {
    Instructions,
    Allocations,
    /// Bytes still in use after the operation.
    Saved,
    /// Bytes of the future, without its box.
    Size,
    /// Bytes on the heap for the future.
    Boxed,
    /// CPU time, measured by turns in one process and shown only as a ratio.
    Time,
    /// Instructions of a whole call, the bare part included.
    Whole,
    /// Crates compiled into a program.
    Crates,
    /// CPU seconds of a cold build.
    CpuSeconds,
    /// Bytes of the stripped program.
    Stripped,
    /// Bytes of the stripped program, built with fat LTO and `panic = "abort"`.
    StrippedFat,
    /// Bytes that a further client type adds to the stripped program.
    Further,
}

impl Figure {
    /// Returns `true` if a run of counts alone leaves it out.
    pub(crate) fn is_slow(self) -> bool {
        matches!(
            self,
            Self::Time | Self::Crates | Self::CpuSeconds | Self::Stripped | Self::StrippedFat | Self::Further
        )
    }
}

/// The upper bound of a figure.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Limit {
    AtMost(f64),
    /// At most this multiple of the best figure among these contenders.
    Times(f64, &'static [&'static str]),
    /// At most this much more than this contender.
    Above(f64, &'static str),
    /// No limit; the ratio to the best of these contenders is shown.
    Shown(&'static [&'static str]),
}

/// The margin below a limit: counts move by up to 2 % with the path of the checkout.
pub(crate) const AIR: f64 = 0.03;

const fn goal(figure: Figure, limit: Limit) -> Goal {
    Goal { figure, limit, aim: None }
}

/// tower's `Retry` by hand, with each budget; goals compare with the better one.
const TOWER: &[&str] = &["tower", "tower-bucket"];

/// Returns every line, in the order of the table.
pub(crate) fn lines() -> impl Iterator<Item = &'static Line> {
    calls::LINES.iter().chain(parts::LINES).chain(guards::LINES).chain(endpoints::LINES)
}
