//! Counts of everything that a process holds, over time.

use std::fmt;
use std::fs;
use std::time::Duration;

use peak_alloc::PeakAlloc;
use reattempt_picture::{Axis, Figure, Panel, Series, Shape};
use tokio::runtime::Handle;
use tower::BoxError;

const MIB: f64 = 1024.0 * 1024.0;
const PAGE: f64 = 4096.0;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// One of the counts that must not grow.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Allocated,
    Resident,
    Descriptors,
    Tasks,
}

/// The counts of a moment without calls.
#[derive(Debug)]
pub(crate) struct Sample {
    at: Duration,
    allocated: f64,
    resident: f64,
    descriptors: usize,
    tasks: usize,
    pub(crate) held: usize,
}

impl Kind {
    pub(crate) const ALL: [Self; 4] = [Self::Allocated, Self::Resident, Self::Descriptors, Self::Tasks];

    /// Returns the growth that is no sign of a leak: a few connections of the pools, which end at random, with their
    /// buffers, and the gaps between allocations, which grow for some minutes. One leaked byte a call is more in an
    /// hour.
    pub(crate) fn tolerance(self) -> f64 {
        match self {
            Self::Allocated => 0.5,
            Self::Resident => 4.0,
            Self::Descriptors | Self::Tasks => 4.0,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Allocated => "allocated, MiB",
            Self::Resident => "resident, MiB",
            Self::Descriptors => "descriptors",
            Self::Tasks => "tasks",
        })
    }
}

impl Sample {
    pub(crate) fn take(at: Duration, held: usize) -> Result<Self, BoxError> {
        let statm = fs::read_to_string("/proc/self/statm")?;
        let pages = statm.split(' ').nth(1).ok_or("no resident size in /proc/self/statm")?;
        let resident = pages.parse::<f64>()? * PAGE / MIB;
        let descriptors = fs::read_dir("/proc/self/fd")?.count();
        let tasks = Handle::current().metrics().num_alive_tasks();
        Ok(Self { at, allocated: ALLOCATOR.current_usage() as f64 / MIB, resident, descriptors, tasks, held })
    }

    fn value(&self, kind: Kind) -> f64 {
        match kind {
            Kind::Allocated => self.allocated,
            Kind::Resident => self.resident,
            Kind::Descriptors => self.descriptors as f64,
            Kind::Tasks => self.tasks as f64,
        }
    }
}

/// Returns the mean of the first quarter and of the last quarter.
pub(crate) fn growth(samples: &[Sample], kind: Kind) -> (f64, f64) {
    let quarter = samples.len() / 4;
    let mean = |samples: &[Sample]| {
        let sum = samples.iter().map(|sample| sample.value(kind)).sum::<f64>();
        sum / samples.len().max(1) as f64
    };
    (mean(&samples[..quarter]), mean(&samples[samples.len() - quarter..]))
}

/// Draws the curves.
pub(crate) fn figure(samples: &[Sample]) -> Figure {
    let panel = |color: usize, kind: Kind| {
        let points = samples.iter().map(|sample| (sample.at.as_secs_f64(), sample.value(kind)));
        let series = Series { name: String::new(), color, shape: Shape::Line(points.collect()) };
        Panel {
            title: String::new(),
            x: Axis::from_zero("time, s"),
            y: Axis::from_zero(kind.to_string()),
            series: vec![series],
        }
    };
    Figure {
        title: "What the process holds while no call is in flight".to_owned(),
        panels: Kind::ALL.into_iter().enumerate().map(|(color, kind)| panel(color, kind)).collect(),
        columns: 2,
    }
}
