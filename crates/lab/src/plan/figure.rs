//! A picture of the delays: one panel for each policy, all on the same axes.

use super::Course;
use crate::picture::{Axis, Figure, Panel, Series, Shape};

pub(super) fn figure(courses: &[Course]) -> Figure {
    let bands = || courses.iter().flat_map(|course| &course.retries);
    let longest = bands().map(|band| band.to).fold(0.0, f64::max);
    let first = bands().filter(|band| band.retry == 1 && band.to > 0.0).map(|band| band.to);
    let shortest = first.fold(longest, f64::min);
    let last = bands().map(|band| f64::from(band.retry)).fold(1.0, f64::max);
    // On a linear axis only the longest delays would be visible.
    let logarithmic = longest > 100.0 * shortest;
    // A logarithmic axis has no place for zero, which then lies at its low end.
    let label = match logarithmic && bands().any(|band| band.from == 0.0) {
        true => "delay, s (0 at the bottom)",
        false => "delay, s",
    };
    let least = if logarithmic { shortest / 10.0 } else { 0.0 };
    let panels = courses.iter().map(|course| {
        // All retries have the same width, without gaps between them.
        let ends = || {
            course
                .retries
                .iter()
                .flat_map(|band| [-0.5, 0.5].map(|half| (f64::from(band.retry) + half, band.from, band.to, band.mean)))
        };
        let band = ends().map(|(at, from, to, _)| (at, from, to)).collect();
        let mean = ends().map(|(at, _, _, mean)| (at, mean)).collect();
        Panel {
            title: course.policy.clone(),
            x: Axis::whole("retry", 0.5, last + 0.5),
            y: Axis { logarithmic, at_least: Some((least, longest)), ..Axis::from_zero(label) },
            series: vec![
                Series { name: "shortest to longest".to_owned(), color: 0, shape: Shape::Band(band) },
                Series { name: "mean".to_owned(), color: 1, shape: Shape::Line(mean) },
            ],
        }
    });
    Figure {
        title: "The delay before each retry".to_owned(),
        columns: if courses.len() > 4 { 3 } else { 2 },
        panels: panels.collect(),
    }
}
