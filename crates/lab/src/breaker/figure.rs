//! The picture of breakers: a panel for each, with the script, the states and the calls refused.

use std::time::Duration;

use super::{Shown, Step};
use crate::picture::{Axis, Figure, Panel, Series, Shape};

pub(super) fn figure(shown: &[Shown], errors: &[Step], duration: Duration) -> Figure {
    let end = duration.as_secs_f64();
    let panel = |shown: &Shown| {
        let mut series = states(shown);
        series.push(named("calls refused", 0, Shape::Line(refused(shown))));
        series.push(named("share of those sent that fails", 1, Shape::Line(script(errors, end))));
        Panel {
            title: shown.breaker.clone(),
            x: Axis { at_least: Some((0.0, end)), ..Axis::from_zero("time, s") },
            y: Axis { at_least: Some((0.0, 1.0)), ..Axis::from_zero("share of the calls") },
            series,
        }
    };
    Figure {
        title: "A circuit breaker, and the failures that it meets".to_owned(),
        panels: shown.iter().map(panel).collect(),
        columns: 1,
    }
}

fn named(name: &str, color: usize, shape: Shape) -> Series {
    Series { name: name.to_owned(), color, shape }
}

/// Returns the stretches in which the breaker is not closed. A half-open state may last as long as one call only, so
/// it is drawn as a bar, which is always visible.
fn states(shown: &Shown) -> Vec<Series> {
    let of = |state: &'static str| shown.stretches.iter().filter(move |stretch| stretch.state == state);
    let open =
        of("open").map(|stretch| named("open", 7, Shape::Band(vec![(stretch.from, 0.0, 1.0), (stretch.to, 0.0, 1.0)])));
    let probes: Vec<_> = of("half-open").map(|stretch| (stretch.from, stretch.to, 0.0, 1.0)).collect();
    let probes = (!probes.is_empty()).then(|| named("half-open", 2, Shape::Bars(probes)));
    open.chain(probes).collect()
}

/// Returns the share of the calls of each second that was refused.
fn refused(shown: &Shown) -> Vec<(f64, f64)> {
    let share = |(at, second): (u32, &super::Second)| {
        let calls = f64::from(second.calls.max(1));
        (f64::from(at) + 0.5, f64::from(second.refused) / calls)
    };
    (0..).zip(&shown.per_second).map(share).collect()
}

fn script(errors: &[Step], end: f64) -> Vec<(f64, f64)> {
    let mut points = vec![(0.0, 0.0)];
    for step in errors {
        let before = points.last().map_or(0.0, |(_, share)| *share);
        let from = step.from.as_secs_f64().min(end);
        points.extend([(from, before), (from, step.share)]);
    }
    let last = points.last().map_or(0.0, |(_, share)| *share);
    points.push((end, last));
    points
}
