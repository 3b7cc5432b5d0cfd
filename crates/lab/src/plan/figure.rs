//! The bands of several policies side by side, all on the same axes.

use super::Course;
use crate::picture::{Axis, Figure, Panel, Series, Shape};

pub(super) fn figure(courses: &[Course]) -> Figure {
    let bands = || courses.iter().flat_map(|course| &course.retries);
    let longest = bands().map(|band| band.to).fold(0.0, f64::max);
    let first = bands().filter(|band| band.retry == 1 && band.to > 0.0).map(|band| band.to);
    let shortest = first.fold(longest, f64::min);
    let last = bands().map(|band| f64::from(band.retry)).fold(1.0, f64::max);
    // A linear axis would show nothing but the longest ones.
    let logarithmic = longest > 100.0 * shortest;
    let axis = |label: &str, logarithmic, at_least| Axis {
        label: label.to_owned(),
        logarithmic,
        at_least: Some(at_least),
    };
    let panels = courses.iter().map(|course| {
        let band = course.retries.iter();
        let band = band.map(|band| (f64::from(band.retry), band.from, band.to)).collect();
        let mean = course.retries.iter().map(|band| (f64::from(band.retry), band.mean)).collect();
        Panel {
            title: course.policy.clone(),
            x: axis("retry", false, (0.0, last)),
            y: axis(
                "delay, s",
                logarithmic,
                (if logarithmic { shortest / 10.0 } else { 0.0 }, longest),
            ),
            series: vec![
                Series { name: "from … to".to_owned(), color: 0, shape: Shape::Band(band) },
                Series { name: "mean".to_owned(), color: 1, shape: Shape::Line(mean) },
            ],
        }
    });
    Figure {
        title: "Delays before each retry".to_owned(),
        columns: if courses.len() > 4 { 3 } else { 2 },
        panels: panels.collect(),
    }
}
