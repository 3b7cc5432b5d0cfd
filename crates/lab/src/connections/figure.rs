//! The picture: for each scene and fleet, the success and the attempts a call of each policy.

use super::Shown;
use super::counts::Figures;
use crate::picture::{Axis, Figure, Panel, Series, Shape};

/// Half of the width of a bar; the bars are 1 apart.
const HALF: f64 = 0.4;

pub(super) fn figure(shown: &[Shown]) -> Figure {
    let panel = |shown: &Shown| {
        let policies = shown.policies.iter().enumerate();
        let bars = policies.clone().map(|(number, figures)| {
            let middle = number as f64 + 1.0;
            let bar = Shape::Bars(vec![(middle - HALF, middle + HALF, 0.0, figures.success)]);
            Series { name: figures.policy.clone(), color: number, shape: bar }
        });
        let dot = |(number, figures): (usize, &Figures)| (number as f64 + 1.0, figures.attempts_per_call);
        let dots = Shape::Points(policies.clone().map(dot).collect());
        let attempts = Series { name: "attempts a call".to_owned(), color: 7, shape: dots };
        Panel {
            title: format!("{}, {}", shown.scene, shown.fleet),
            x: Axis { at_least: Some((0.0, shown.policies.len() as f64 + 1.0)), ..Axis::from_zero("policy") },
            y: Axis { at_least: Some((0.0, 1.0)), ..Axis::from_zero("success, attempts a call") },
            series: bars.chain([attempts]).collect(),
        }
    };
    Figure {
        title: "Connections that end: the calls that succeed (bars), and the attempts a call (dots)".to_owned(),
        panels: shown.iter().map(panel).collect(),
        columns: 3,
    }
}
