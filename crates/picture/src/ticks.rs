//! The range of an axis and the places of its marks.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};

use crate::figure::Axis;

/// An axis with its ends and marks.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    marks: Vec<f64>,
    logarithmic: bool,
}

/// The tolerance for rounding errors.
const DUST: f64 = 1e-9;

impl Axis {
    fn shown(&self, values: impl Iterator<Item = f64>) -> impl Iterator<Item = f64> {
        let wanted = self.at_least.into_iter().flat_map(|(low, high)| [low, high]);
        values.chain(wanted).filter(|value| value.is_finite())
    }

    /// Returns the distance between two marks.
    fn step(&self, low: f64, high: f64) -> f64 {
        let step = round_step((high - low) / 5.0);
        if self.whole { step.max(1.0) } else { step }
    }
}

impl Scale {
    /// Creates a scale from the least to the greatest of these values.
    pub(crate) fn exact(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        if axis.logarithmic {
            return Self::rounded(axis, values);
        }
        let (low, high) = reach(axis, values);
        let step = axis.step(low, high);
        let marks = multiples(step, (low / step - DUST).ceil(), (high / step + DUST).floor());
        Self { low, high, marks, logarithmic: false }
    }

    /// Creates a scale that is extended to a mark at both ends.
    pub(crate) fn rounded(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        if axis.logarithmic {
            return Self::logarithmic(axis, values);
        }
        let (low, high) = reach(axis, values);
        let step = axis.step(low, high);
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let marks = multiples(step, first, last);
        Self { low: first * step, high: last * step, marks, logarithmic: false }
    }

    fn logarithmic(axis: &Axis, values: impl Iterator<Item = f64>) -> Self {
        let powers = axis.shown(values).filter(|value| *value > 0.0).map(f64::log10);
        let (low, high) = ends(powers).unwrap_or((0.0, 1.0));
        let (low, high) = ((low + DUST).floor(), (high - DUST).ceil());
        let high = if high > low { high } else { low + 1.0 };
        let marks = whole_numbers(low, high).map(|power| 10f64.powf(power)).collect();
        Self { low: 10f64.powf(low), high: 10f64.powf(high), marks, logarithmic: true }
    }

    /// Returns the place of a value between the ends: 0 at the low one, 1 at the high one.
    fn share(&self, value: f64) -> f64 {
        if self.logarithmic {
            let power = value.max(self.low).log10();
            (power - self.low.log10()) / (self.high.log10() - self.low.log10())
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    #[allow(clippy::cast_possible_truncation, reason = "the cast saturates, far out of the picture")]
    fn map(&self, value: &f64, (first, last): (i32, i32)) -> i32 {
        first.saturating_add((self.share(*value) * f64::from(last - first)).round() as i32)
    }

    fn key_points<Hint: KeyPointHint>(&self, _: Hint) -> Vec<f64> {
        self.marks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(mark: &f64) -> String {
        // Removes rounding errors; adding 0.0 turns -0 into 0.
        let round = |value: f64| (value * 1e9).round() / 1e9 + 0.0;
        if mark.abs() >= 1e6 { format!("{} M", round(mark / 1e6)) } else { round(*mark).to_string() }
    }
}

/// Returns the ends of a linear axis, which always differ.
fn reach(axis: &Axis, values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = ends(axis.shown(values)).unwrap_or((0.0, 1.0));
    (low, if high > low { high } else { low + 1.0 })
}

fn multiples(step: f64, first: f64, last: f64) -> Vec<f64> {
    whole_numbers(first, last).map(|number| number * step).collect()
}

fn ends(values: impl Iterator<Item = f64>) -> Option<(f64, f64)> {
    values.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// Returns the least of 1, 2 or 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0].map(|times| times * power).into_iter().find(|round| *round >= step * 0.999).unwrap_or(10.0 * power)
}

fn whole_numbers(first: f64, last: f64) -> impl Iterator<Item = f64> {
    std::iter::successors(Some(first), |number| Some(number + 1.0)).take_while(move |number| *number <= last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
        let scale = Scale::rounded(axis, values.iter().copied());
        scale.marks.iter().map(Scale::format).collect()
    }

    #[test]
    fn marks_are_round_and_enclose_all_values() {
        let linear = Axis::from_zero("");
        assert_eq!(labels(&linear, &[0.3, 0.83]), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(labels(&linear, &[200.0]), ["0", "50", "100", "150", "200"]);
        assert_eq!(Scale::format(&-0.0), "0");
        assert_eq!(labels(&linear, &[4e6]), ["0", "1 M", "2 M", "3 M", "4 M"]);
        assert_eq!(labels(&linear, &[]), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        let logarithmic = Axis::logarithmic("");
        assert_eq!(labels(&logarithmic, &[0.0, 0.02, 300.0]), ["0.01", "0.1", "1", "10", "100", "1000"]);
    }

    #[test]
    fn an_exact_axis_ends_where_its_values_do() {
        let scale = Scale::exact(&Axis::from_zero(""), [21.8].into_iter());
        assert_eq!((scale.low, scale.high), (0.0, 21.8));
        let labels: Vec<_> = scale.marks.iter().map(Scale::format).collect();
        assert_eq!(labels, ["0", "5", "10", "15", "20"]);
        let scale = Scale::exact(&Axis::from_zero(""), [0.3].into_iter());
        assert_eq!(scale.marks.len(), 4, "the last one is not lost to rounding: {scale:?}");
    }

    #[test]
    fn axis_of_counts_has_whole_marks() {
        let scale = Scale::exact(&Axis::whole("", 0.5, 2.5), std::iter::empty());
        assert_eq!((scale.low, scale.high, &scale.marks[..]), (0.5, 2.5, &[1.0, 2.0][..]));
    }

    #[test]
    fn logarithmic_axis_has_zero_at_its_low_end() {
        let scale = Scale::rounded(&Axis::logarithmic(""), [0.1, 10.0].into_iter());
        assert_eq!([0.0, 0.001, 1.0].map(|value| scale.share(value)), [0.0, 0.0, 0.5]);
    }
}
