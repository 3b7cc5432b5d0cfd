//! The picture of limits: for each scene the limit, the calls served beside the capacity, and the median latency.

use std::time::Duration;

use super::simulation::Second;
use super::{Course, Shown};
use crate::picture::{Axis, Figure, Panel, Series, Shape};

/// The seconds that one point stands for.
const STRETCH: usize = 5;

pub(super) fn figure(shown: &[Shown]) -> Figure {
    let panels = |shown: &Shown| {
        let panel = |label: &str, value: fn(&[Second]) -> f64| Panel {
            title: shown.scene.to_owned(),
            x: Axis::from_zero("time, s"),
            y: Axis::from_zero(label),
            series: shown.limits.iter().zip(0..).map(|course| series(course, value)).collect(),
        };
        let mut served = panel("served a second", |seconds| mean(seconds, |second| second.latencies.len() as f64));
        let capacity = shown.limits.first().map(|course| Series {
            name: "capacity".to_owned(),
            color: 7,
            shape: Shape::Line(points(&course.seconds, |seconds| mean(seconds, |second| second.capacity))),
        });
        served.series.splice(0..0, capacity);
        let limit = panel("limit", |seconds| mean(seconds, |second| f64::from(second.limit)));
        [limit, served, panel("median latency, s", median)]
    };
    Figure {
        title: "Adaptive limits before a server whose capacity changes".to_owned(),
        panels: shown.iter().flat_map(panels).collect(),
        columns: 3,
    }
}

fn series((course, color): (&Course, usize), value: fn(&[Second]) -> f64) -> Series {
    let shape = Shape::Line(points(&course.seconds, value));
    Series { name: course.limit.clone(), color, shape }
}

fn points(seconds: &[Second], value: fn(&[Second]) -> f64) -> Vec<(f64, f64)> {
    let stretches = seconds.chunks(STRETCH).enumerate();
    stretches.map(|(number, seconds)| (((number * STRETCH) as f64) + 2.5, value(seconds))).collect()
}

fn mean(seconds: &[Second], value: fn(&Second) -> f64) -> f64 {
    seconds.iter().map(value).sum::<f64>() / seconds.len().max(1) as f64
}

fn median(seconds: &[Second]) -> f64 {
    let mut latencies: Vec<_> = seconds.iter().flat_map(|second| &second.latencies).collect();
    latencies.sort_unstable();
    latencies.get(latencies.len() / 2).map_or(f64::NAN, |latency: &&Duration| latency.as_secs_f64())
}
