//! Pictures of the delay of each call, and of the calls per second.

use std::collections::BTreeMap;

use super::workers::Call;
use crate::picture::{Axis, Figure, Panel, Series, Shape};

/// Draws the calls of a gate by number, with the gap that the gate requires.
pub(super) fn of_gate(calls: &[Call], gap: f64) -> Figure {
    let number = |call: usize| call as f64 + 1.0;
    let last = calls.len() as f64;
    let mut series = delays(calls, |(index, _)| number(index));
    let wanted = Shape::Line(vec![(1.0, gap), (last, gap)]);
    series.push(Series { name: "the gap that the gate wants".to_owned(), color: 0, shape: wanted });
    let panel = Panel {
        title: String::new(),
        x: Axis::whole("call", 1.0, 2.0),
        y: Axis::logarithmic("delay before the call, s"),
        series,
    };
    Figure { title: TITLE.to_owned(), panels: vec![panel], columns: 1 }
}

/// Draws the calls of a table over time, above the load and the capacity of the table.
pub(super) fn of_table(calls: &[Call]) -> Figure {
    let end = calls.last().map_or(0.0, |call| call.at);
    let time = || Axis { at_least: Some((0.0, end)), ..Axis::from_zero("time, s") };
    let delays = Panel {
        title: "The calls that waited".to_owned(),
        x: time(),
        y: Axis::logarithmic("delay before the call, s"),
        series: delays(calls, |(_, call)| call.at),
    };
    let load = Panel { x: time(), ..load(calls) };
    Figure { title: TITLE.to_owned(), panels: vec![delays, load], columns: 1 }
}

const TITLE: &str = "A pace that follows the service";

/// Returns the delays as points, for the calls that waited.
fn delays(calls: &[Call], place: impl Fn((usize, &Call)) -> f64) -> Vec<Series> {
    let points = |accepted: bool, name: &str, color| {
        let calls = calls.iter().enumerate();
        let of_kind = calls.filter(|(_, call)| call.accepted == accepted && call.delay > 0.0);
        let points = of_kind.map(|(index, call)| (place((index, call)), call.delay)).collect();
        Series { name: name.to_owned(), color, shape: Shape::Points(points) }
    };
    vec![points(true, "accepted", 2), points(false, "refused", 1)]
}

/// Returns the calls and the capacity of each second.
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
        shape: Shape::Line(seconds.iter().map(|(second, values)| (f64::from(*second), value(values))).collect()),
    };
    Panel {
        title: "All calls".to_owned(),
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
