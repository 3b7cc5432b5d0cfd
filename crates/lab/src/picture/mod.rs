//! Pictures: figures as plain data, and the files that show them.
//!
//! Input: a [`Figure`], which has panels of named series over two axes. Output: an SVG, whose text
//! the viewer draws in its own font, or a PNG, whose text is drawn in the bundled font. Only this
//! module uses the plotting library.

mod draw;
mod legend;
mod style;
mod ticks;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// One picture.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) title: String,
    /// The panels, all of one size, side by side and then in rows.
    pub(crate) panels: Vec<Panel>,
    /// The number of panels side by side.
    pub(crate) columns: usize,
}

/// One diagram of a picture.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    /// The title; empty for none.
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// An axis. A horizontal axis ends at the last value, a vertical one at the next mark.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) label: String,
    /// Marks at powers of ten; values of zero or below lie at the low end.
    pub(crate) logarithmic: bool,
    /// The least range of the axis.
    pub(crate) at_least: Option<(f64, f64)>,
    /// Marks at whole numbers only, for counts.
    pub(crate) whole: bool,
}

impl Axis {
    /// Creates a linear axis from zero.
    pub(crate) fn from_zero(label: impl Into<String>) -> Self {
        let at_least = Some((0.0, 0.0));
        Self { label: label.into(), logarithmic: false, at_least, whole: false }
    }

    /// Creates a linear axis of counts, which shows at least this range.
    pub(crate) fn whole(label: impl Into<String>, from: f64, to: f64) -> Self {
        Self { at_least: Some((from, to)), whole: true, ..Self::from_zero(label) }
    }

    /// Creates an axis with marks at powers of ten.
    pub(crate) fn logarithmic(label: impl Into<String>) -> Self {
        Self { logarithmic: true, at_least: None, ..Self::from_zero(label) }
    }
}

/// A series of values, drawn in one colour.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// The name in the legend. A series without a name is left out, and equal names appear once.
    pub(crate) name: String,
    /// The number of the colour, modulo 8. Series with the same number have the same colour.
    pub(crate) color: usize,
    pub(crate) shape: Shape,
}

/// The shape in which a series is drawn.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
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
    fn points(&self) -> Vec<(f64, f64)> {
        match self {
            Shape::Line(points) | Shape::Points(points) => points.clone(),
            Shape::Band(points) => points.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]).collect(),
            Shape::Bars(bars) => bars.iter().flat_map(|&(from, to, low, high)| [(from, low), (to, high)]).collect(),
        }
    }
}

impl Figure {
    /// Draws the picture into a file, as an SVG or a PNG by the file's extension.
    pub(crate) fn save(&self, path: &Path) -> Result<(), LabError> {
        let bytes = match Format::of(path).map_err(LabError::new)? {
            Format::Svg => draw::svg(self)?.into_bytes(),
            Format::Png => draw::png(self)?,
        };
        fs::write(path, bytes).map_err(|error| LabError::new(format!("cannot write {}: {error}", path.display())))
    }
}

enum Format {
    Svg,
    Png,
}

impl Format {
    fn of(path: &Path) -> Result<Self, String> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(svg) if svg.eq_ignore_ascii_case("svg") => Ok(Self::Svg),
            Some(png) if png.eq_ignore_ascii_case("png") => Ok(Self::Png),
            _ => Err("the file's name must end in .svg or .png".to_owned()),
        }
    }
}

/// Parses a path whose extension names a known format.
pub(crate) fn parse_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    Format::of(&path).map(|_| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure() -> Figure {
        let band = Shape::Band(vec![(1.0, 0.0, 0.1), (2.0, 0.0, 10.0)]);
        let line = Shape::Line(vec![(1.0, 0.05), (2.0, 5.0)]);
        let series = vec![
            Series { name: "band & line".into(), color: 0, shape: band },
            Series { name: String::new(), color: 0, shape: line },
        ];
        let y = Axis::logarithmic("delay, s");
        let panel = Panel { title: "left".into(), x: Axis::from_zero("retry"), y, series };
        let empty = Panel { title: "right".into(), series: Vec::new(), ..panel.clone() };
        Figure { title: "Delays".into(), panels: vec![panel, empty], columns: 2 }
    }

    #[test]
    fn svg_names_its_content() {
        let svg = draw::svg(&figure()).unwrap();
        for text in ["Delays", "left", "right", "retry", "delay, s", "band &amp; line", "0.1", "10"] {
            assert!(svg.contains(text), "{text} is missing in {svg}");
        }
        assert_eq!(svg, draw::svg(&figure()).unwrap());
    }

    /// A single legend above all panels hides no data. A second line starts when the first is full.
    #[test]
    fn legend_names_each_series_once() {
        let mut figure = figure();
        let panel = figure.panels[0].clone();
        figure.panels.push(panel.clone());
        let svg = draw::svg(&figure).unwrap();
        assert_eq!(svg.matches("band &amp; line").count(), 1);
        let place = |text: &str| {
            let (before, _) = svg.split_at(svg.find(text).unwrap());
            let (_, y) = before.rsplit_once(" y=\"").unwrap();
            y.split_once('"').unwrap().0.parse::<u32>().unwrap()
        };
        assert!(place("Delays") < place("band &amp;") && place("band &amp;") < place("left"));

        let height = |figure: &Figure| {
            let svg = draw::svg(figure).unwrap();
            let (_, height) = svg.split_once("height=\"").unwrap();
            height.split_once('"').unwrap().0.parse::<u32>().unwrap()
        };
        let before = height(&figure);
        let named =
            |number: u32| Series { name: format!("a series with a long name, {number}"), ..panel.series[0].clone() };
        figure.panels[0].series = (0..5).map(named).collect();
        assert_eq!(height(&figure), before + 24, "of six names three have their place in a line");
    }

    #[test]
    fn a_long_title_is_written_smaller() {
        let mut figure = figure();
        let size = |figure: &Figure, text: &str| {
            let svg = draw::svg(figure).unwrap();
            let (before, _) = svg.split_at(svg.find(text).unwrap());
            let (_, size) = before.rsplit_once("font-size=\"").unwrap();
            size.split_once('"').unwrap().0.parse::<f64>().unwrap()
        };
        let (title, panel) = (size(&figure, "Delays"), size(&figure, "left"));
        figure.title = "Delays ".repeat(30);
        figure.panels[0].title = "left, ".repeat(20);
        assert!(size(&figure, "Delays") < 0.6 * title);
        assert!(size(&figure, "left") < 0.7 * panel);
    }

    #[test]
    fn equal_dots_are_drawn_once() {
        let mut figure = figure();
        let dots = Shape::Points(vec![(1.5, 1.0), (1.5, 1.0), (1.5, 2.0)]);
        figure.panels[0].series[1].shape = dots;
        assert_eq!(draw::svg(&figure).unwrap().matches("<circle").count(), 2);
        let before = draw::svg(&figure).unwrap().matches("<polyline").count();
        figure.panels[0].series[1].shape = Shape::Bars(vec![(1.5, 1.5, 1.0, 2.0)]);
        assert_eq!(draw::svg(&figure).unwrap().matches("<polyline").count(), before + 1);
    }

    #[test]
    fn png_text_needs_no_system_font() {
        let size = |png: &[u8]| {
            let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            pixels.iter().filter(|part| **part < 100).count()
        };
        let with_text = size(&draw::png(&figure()).unwrap());
        let mut silent = figure();
        silent.title.clear();
        let without = size(&draw::png(&silent).unwrap());
        assert!(with_text > without + 100, "{with_text} dark dots, {without} without the title");
    }

    #[test]
    fn a_value_that_is_not_a_number_is_left_out() {
        let mut figure = figure();
        let line = vec![(1.0, f64::NAN), (f64::INFINITY, 1.0), (2.0, -1.0)];
        figure.panels[0].series[1].shape = Shape::Line(line);
        assert!(draw::svg(&figure).is_ok());
    }

    #[test]
    fn only_two_formats_are_known() {
        assert!(parse_path("a.PNG").is_ok());
        assert_eq!(parse_path("a.jpg").unwrap_err(), "the file's name must end in .svg or .png");
        assert!(parse_path("svg").is_err());
    }
}
