//! The picture of a storm: a panel for each policy, with the load on the server and the successful
//! calls.

use std::ops::Range;

use super::Course;
use crate::picture::{Axis, Figure, Panel, Series, Shape};

/// Draws the curves of each policy, as multiples of a load.
pub(super) fn figure(title: &str, label: &str, courses: &[Course], unit: f64, outage: &Range<f64>) -> Figure {
    let refused = courses.iter().flat_map(|course| &course.per_second.refused).copied();
    let loads = courses.iter().map(|course| course.figures.peak_load);
    let highest = loads.chain(refused).max().unwrap_or(0);
    // Up to the top of the axis, which ends at a mark.
    let top = 2.0 * (highest as f64 / unit / 2.0).ceil();
    let panel = |course: &Course| {
        let curves = &course.per_second;
        let series = |color, name: &str, counts: &[u64]| {
            // Every curve ends with the last call: seconds after it are left out, and counts that end sooner are zero.
            let counts = (0_u32..).zip(counts.iter().chain(std::iter::repeat(&0)).take(curves.calls.len()));
            let points = counts.map(|(at, count)| (f64::from(at), *count as f64 / unit));
            Series { name: name.to_owned(), color, shape: Shape::Line(points.collect()) }
        };
        let refused = (curves.refused.iter().any(|count| *count > 0))
            .then(|| series(3, "calls refused by a guard", &curves.refused));
        let outage = Shape::Band(vec![(outage.start, 0.0, top), (outage.end, 0.0, top)]);
        Panel {
            title: course.policy.clone(),
            x: Axis::from_zero("time, s"),
            y: Axis { at_least: Some((0.0, top)), ..Axis::from_zero(label) },
            series: [
                Series { name: "outage".to_owned(), color: 7, shape: outage },
                series(1, "attempts sent", &curves.attempts),
                series(0, "calls that succeed", &curves.goodput),
            ]
            .into_iter()
            .chain(refused)
            .collect(),
        }
    };
    Figure {
        title: title.to_owned(),
        panels: courses.iter().map(panel).collect(),
        columns: if courses.len() > 4 { 3 } else { 2 },
    }
}
