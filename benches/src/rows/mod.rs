//! The rows of the table, and who competes in each.

#[cfg(feature = "peers")]
mod body;
#[cfg(feature = "peers")]
mod budget;
mod call;
mod grpc;
#[cfg(feature = "peers")]
mod layers;
mod once;
mod operation;
#[cfg(feature = "peers")]
mod schedule;
mod settings;
#[cfg(feature = "peers")]
mod size;
#[cfg(feature = "peers")]
mod waiting;
#[cfg(feature = "peers")]
mod wire;

#[cfg(feature = "peers")]
use wire::in_flight;

#[cfg(feature = "peers")]
pub use size::{Sized, sizes};
#[cfg(feature = "peers")]
pub use wire::serve;

/// Does as many operations as it is told.
pub type Work = Box<dyn FnMut(u64)>;

/// One of those who are measured.
#[derive(Debug, Clone, Copy)]
pub struct Contender {
    /// Its name on the command line.
    pub name: &'static str,
    /// The contender of the same row whose cost is taken off before anything is compared.
    pub bare: Option<&'static str>,
    /// Prepares it.
    pub prepare: fn() -> Work,
}

/// One kind of operation.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its name in the table.
    pub title: &'static str,
    /// How many operations are counted: enough for a mean, few enough for callgrind.
    pub operations: u64,
    /// Whether its instructions are counted.
    pub counted: bool,
    /// Whether it is timed, by [`cpu_times`](crate::cpu_times).
    pub timed: bool,
    /// Those who are measured.
    pub contenders: &'static [Contender],
}

/// Every row.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    let few = [call::ROWS, once::ROWS, settings::ROWS, operation::ROWS, grpc::ROWS];
    #[cfg(feature = "peers")]
    let more = [
        layers::ROWS,
        schedule::ROWS,
        budget::ROWS,
        body::ROWS,
        wire::ROWS,
        in_flight::ROWS,
        waiting::ROWS,
    ];
    #[cfg(not(feature = "peers"))]
    let more: [&[Row]; 0] = [];
    few.into_iter().chain(more).flatten()
}

/// The contender of this name in the row of that name.
pub fn find(row: &str, contender: &str) -> Option<&'static Contender> {
    let row = rows().find(|known| known.name == row)?;
    row.contenders.iter().find(|known| known.name == contender)
}

/// Panics unless every contender does what it is measured for: that who claims to retry does so,
/// that what is read was sent, that what is empty refuses.
pub fn check() {
    once::check();
    settings::check();
    operation::check();
    #[cfg(feature = "peers")]
    {
        layers::check();
        schedule::check();
        budget::check();
        body::check();
        wire::check();
        in_flight::check();
        waiting::check();
    }
}

/// A contender of this name, whose cost counts above that of the one called `bare`.
const fn above(name: &'static str, bare: &'static str, prepare: fn() -> Work) -> Contender {
    Contender { name, bare: Some(bare), prepare }
}

/// A contender whose cost counts as it is.
const fn alone(name: &'static str, prepare: fn() -> Work) -> Contender {
    Contender { name, bare: None, prepare }
}
