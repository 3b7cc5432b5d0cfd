//! The rows of the table, and the contenders of each.

#[cfg(feature = "bodies")]
mod body;
mod budget;
mod call;
#[cfg(feature = "guards")]
mod endpoints;
mod fleet;
#[cfg(feature = "bodies")]
mod grpc;
#[cfg(feature = "guards")]
mod guards;
mod head;
#[cfg(feature = "layers")]
mod layers;
mod once;
mod operation;
#[cfg(feature = "layers")]
mod peek_body;
#[cfg(feature = "peers")]
mod schedule;
mod settings;
#[cfg(feature = "peers")]
mod size;
#[cfg(feature = "telemetry")]
mod telemetry;
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

/// A function that does the given number of operations.
pub type Work = Box<dyn FnMut(u64)>;

/// A measured implementation.
#[derive(Debug, Clone, Copy)]
pub struct Contender {
    /// The name on the command line.
    pub name: &'static str,
    /// The contender of the same row whose cost is subtracted before any comparison.
    pub bare: Option<&'static str>,
    /// Prepares the work.
    pub prepare: fn() -> Work,
}

/// One kind of operation.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The name on the command line.
    pub name: &'static str,
    /// The name in the table.
    pub title: &'static str,
    /// The number of operations that are counted: enough for a mean, few enough for callgrind.
    pub operations: u64,
    /// `true` if its instructions are counted.
    pub counted: bool,
    /// `true` if it is timed, by [`cpu_times`](crate::cpu_times).
    pub timed: bool,
    /// The contenders.
    pub contenders: &'static [Contender],
}

/// Returns every row.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    let few = [
        call::ROWS,
        once::ROWS,
        settings::ROWS,
        operation::ROWS,
        head::ROWS,
        budget::ROWS,
        fleet::ROWS,
        #[cfg(feature = "guards")]
        guards::ROWS,
        #[cfg(feature = "guards")]
        endpoints::ROWS,
        #[cfg(feature = "bodies")]
        grpc::ROWS,
        #[cfg(feature = "bodies")]
        body::ROWS,
        #[cfg(feature = "layers")]
        layers::ROWS,
        #[cfg(feature = "layers")]
        peek_body::ROWS,
        #[cfg(feature = "telemetry")]
        telemetry::ROWS,
    ];
    #[cfg(feature = "peers")]
    let more = [schedule::ROWS, wire::ROWS, in_flight::ROWS, waiting::ROWS];
    #[cfg(not(feature = "peers"))]
    let more: [&[Row]; 0] = [];
    few.into_iter().chain(more).flatten()
}

/// Returns the contender of this name in the row of that name.
pub fn find(row: &str, contender: &str) -> Option<&'static Contender> {
    let row = rows().find(|known| known.name == row)?;
    row.contenders.iter().find(|known| known.name == contender)
}

/// Panics unless every contender does its job: it retries, it sends what is read, and an empty
/// budget refuses.
pub fn check() {
    once::check();
    settings::check();
    operation::check();
    fleet::check();
    #[cfg(feature = "bodies")]
    body::check();
    #[cfg(feature = "layers")]
    layers::check();
    #[cfg(feature = "telemetry")]
    telemetry::check();
    #[cfg(feature = "peers")]
    {
        guards::check();
        endpoints::check();
        schedule::check();
        budget::check();
        wire::check();
        in_flight::check();
        waiting::check();
    }
}

/// Creates a contender whose cost counts above that of the contender `bare`.
const fn above(name: &'static str, bare: &'static str, prepare: fn() -> Work) -> Contender {
    Contender { name, bare: Some(bare), prepare }
}

/// Creates a contender whose whole cost counts.
const fn alone(name: &'static str, prepare: fn() -> Work) -> Contender {
    Contender { name, bare: None, prepare }
}
