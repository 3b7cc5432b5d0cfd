//! The picture of endpoints: for each scene the success over time, and the share of the attempts at faulty servers.

use super::simulation::Second;
use super::{BEFORE, Figures, Shown};
use crate::picture::{Axis, Figure, Panel, Series, Shape};

/// The seconds that one point stands for.
const STRETCH: usize = 2;

pub(super) fn figure(shown: &[Shown], fault: u64) -> Figure {
    let (from, to) = (BEFORE as f64, (BEFORE + fault) as f64);
    let panels = |shown: &Shown| {
        let panel = |label: &str, value: fn(&Second) -> (u32, u32)| {
            let band = Shape::Band(vec![(from, 0.0, 1.0), (to, 0.0, 1.0)]);
            let fault = Series { name: "fault".to_owned(), color: 7, shape: band };
            let rules = shown.rules.iter().zip(0..).map(|(figures, color)| Series {
                name: figures.rule.to_owned(),
                color,
                shape: Shape::Line(points(figures, value)),
            });
            Panel {
                title: shown.scene.to_owned(),
                x: Axis::from_zero("time, s"),
                y: Axis { at_least: Some((0.0, 1.0)), ..Axis::from_zero(label) },
                series: [fault].into_iter().chain(rules).collect(),
            }
        };
        [
            panel("calls that succeed", |second| (second.succeeded, second.calls)),
            panel("attempts at faulty servers", |second| (second.at_faulty, second.attempts)),
        ]
    };
    Figure {
        title: "Several servers, of which some are faulty for a while".to_owned(),
        panels: shown.iter().flat_map(panels).collect(),
        columns: 2,
    }
}

fn points(figures: &Figures, value: fn(&Second) -> (u32, u32)) -> Vec<(f64, f64)> {
    let stretches = figures.per_second.chunks(STRETCH).enumerate();
    let of_calls = stretches.filter(|(_, seconds)| seconds.iter().any(|second| second.calls > 0));
    of_calls
        .map(|(number, seconds)| {
            let sums = seconds.iter().map(value).fold((0, 0), |sum, (part, all)| (sum.0 + part, sum.1 + all));
            let middle = (number * STRETCH) as f64 + STRETCH as f64 / 2.0;
            (middle, f64::from(sums.0) / f64::from(sums.1.max(1)))
        })
        .collect()
}
