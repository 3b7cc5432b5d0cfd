//! The delay of each call as a point, and how many calls a second there were.

use std::collections::BTreeMap;

use super::workers::Call;
use crate::picture::{Axis, Figure, Panel, Series, Shape};

pub(super) fn figure(calls: &[Call]) -> Figure {
    let points = |accepted: bool, name: &str, color| {
        let of_kind = calls.iter().filter(|call| call.accepted == accepted && call.delay > 0.0);
        let points = of_kind.map(|call| (call.at, call.delay)).collect();
        Series { name: name.to_owned(), color, shape: Shape::Points(points) }
    };
    let delays = Panel {
        title: String::new(),
        x: Axis::from_zero("time, s"),
        y: Axis::logarithmic("delay before the call, s"),
        series: vec![points(true, "accepted", 2), points(false, "refused", 1)],
    };
    let mut panels = vec![delays];
    if calls.iter().any(|call| call.capacity.is_some()) {
        panels.push(load(calls));
    }
    Figure { title: "A pace that follows the service".to_owned(), panels, columns: 2 }
}

/// Calls a second, second by second, and what could be taken.
fn load(calls: &[Call]) -> Panel {
    let mut seconds: BTreeMap<u32, (f64, f64, f64)> = BTreeMap::new();
    for call in calls {
        let (accepted, refused, capacity) = seconds.entry(whole(call.at)).or_default();
        *(if call.accepted { accepted } else { refused }) += 1.0;
        *capacity = call.capacity.unwrap_or_default();
    }
    let line = |name: &str, color, value: fn(&(f64, f64, f64)) -> f64| Series {
        name: name.to_owned(),
        color,
        shape: Shape::Line(
            seconds.iter().map(|(second, values)| (f64::from(*second), value(values))).collect(),
        ),
    };
    Panel {
        title: String::new(),
        x: Axis::from_zero("time, s"),
        y: Axis::from_zero("calls a second"),
        series: vec![
            line("accepted", 2, |(accepted, _, _)| *accepted),
            line("refused", 1, |(_, refused, _)| *refused),
            line("capacity", 0, |(_, _, capacity)| *capacity),
        ],
    }
}

#[allow(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the cast saturates: a second is not below 0, and after 136 years all is one"
)]
fn whole(seconds: f64) -> u32 {
    seconds as u32
}
