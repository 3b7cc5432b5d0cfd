//! A figure as plain data, and the error of drawing it.

use std::error::Error;
use std::fmt;

/// An error of a picture: a message that names the failed action and its reason.
#[derive(Debug)]
pub struct PictureError(String);

impl PictureError {
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self(message.to_string())
    }
}

impl fmt::Display for PictureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Error for PictureError {}

/// One picture.
#[derive(Debug, Clone)]
pub struct Figure {
    /// The title above all panels.
    pub title: String,
    /// The panels, all of one size, side by side and then in rows.
    pub panels: Vec<Panel>,
    /// The number of panels side by side, at most two.
    pub columns: usize,
}

/// One diagram of a picture.
#[derive(Debug, Clone)]
pub struct Panel {
    /// The title; empty for none.
    pub title: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series, the last in front.
    pub series: Vec<Series>,
}

/// An axis. A horizontal axis ends at the last value, a vertical one at the next mark.
#[derive(Debug, Clone)]
pub struct Axis {
    /// The quantity and its unit.
    pub label: String,
    /// Marks at powers of ten; values of zero or below lie at the low end.
    pub logarithmic: bool,
    /// The least range of the axis.
    pub at_least: Option<(f64, f64)>,
    /// Marks at whole numbers only, for counts.
    pub whole: bool,
}

impl Axis {
    /// Creates a linear axis from zero.
    pub fn from_zero(label: impl Into<String>) -> Self {
        let at_least = Some((0.0, 0.0));
        Self { label: label.into(), logarithmic: false, at_least, whole: false }
    }

    /// Creates a linear axis of counts, which shows at least this range.
    pub fn whole(label: impl Into<String>, from: f64, to: f64) -> Self {
        Self { at_least: Some((from, to)), whole: true, ..Self::from_zero(label) }
    }

    /// Creates an axis with marks at powers of ten.
    pub fn logarithmic(label: impl Into<String>) -> Self {
        Self { logarithmic: true, at_least: None, ..Self::from_zero(label) }
    }
}

/// A series of values, drawn in one colour.
#[derive(Debug, Clone)]
pub struct Series {
    /// The name in the legend. A series without a name is left out, and equal names appear once.
    pub name: String,
    /// The number of the colour, modulo 8. Series with the same number have the same colour.
    pub color: usize,
    /// The shape, with its values.
    pub shape: Shape,
}

/// The shape in which a series is drawn.
#[derive(Debug, Clone)]
pub enum Shape {
    /// Points joined by a line.
    Line(Vec<(f64, f64)>),
    /// Separate points.
    Points(Vec<(f64, f64)>),
    /// The area between a low and a high value: `(x, low, high)`.
    Band(Vec<(f64, f64, f64)>),
    /// Rectangles: `(from, to, low, high)`.
    Bars(Vec<(f64, f64, f64, f64)>),
}

impl Shape {
    /// Returns all points; for a band or a bar, those of its edges.
    pub(crate) fn points(&self) -> Vec<(f64, f64)> {
        match self {
            Shape::Line(points) | Shape::Points(points) => points.clone(),
            Shape::Band(points) => points.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]).collect(),
            Shape::Bars(bars) => bars.iter().flat_map(|&(from, to, low, high)| [(from, low), (to, high)]).collect(),
        }
    }
}
