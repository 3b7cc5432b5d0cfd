//! Pictures: what is to be seen, as plain data, and the files that show it.
//!
//! What flows in: a [`Figure`], panels of named series over two axes. What flows out: an SVG, whose
//! text the viewer sets in its own font, or a PNG, whose text is drawn with the font that is built
//! in. Commands know nothing of the library that draws.

mod draw;
mod legend;
mod ticks;

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::LabError;

/// One picture.
#[derive(Debug, Clone)]
pub(crate) struct Figure {
    pub(crate) title: String,
    /// Side by side and then in rows, all of one size.
    pub(crate) panels: Vec<Panel>,
    /// How many panels stand side by side.
    pub(crate) columns: usize,
}

/// One diagram of a picture.
#[derive(Debug, Clone)]
pub(crate) struct Panel {
    /// Empty for none.
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
}

/// An axis. One to the right ends where the series do, one upwards at the next mark.
#[derive(Debug, Clone)]
pub(crate) struct Axis {
    pub(crate) label: String,
    /// By powers of ten; what is zero or below lies on the axis' low end.
    pub(crate) logarithmic: bool,
    /// What the axis shows at least.
    pub(crate) at_least: Option<(f64, f64)>,
    /// Marks at whole numbers only, for what is counted.
    pub(crate) whole: bool,
}

impl Axis {
    /// A linear axis from zero.
    pub(crate) fn from_zero(label: impl Into<String>) -> Self {
        let at_least = Some((0.0, 0.0));
        Self { label: label.into(), logarithmic: false, at_least, whole: false }
    }

    /// A linear axis of numbers of things, which shows these at least.
    pub(crate) fn whole(label: impl Into<String>, from: f64, to: f64) -> Self {
        Self { at_least: Some((from, to)), whole: true, ..Self::from_zero(label) }
    }

    /// An axis by powers of ten.
    pub(crate) fn logarithmic(label: impl Into<String>) -> Self {
        Self { logarithmic: true, at_least: None, ..Self::from_zero(label) }
    }
}

/// What is drawn in one colour.
#[derive(Debug, Clone)]
pub(crate) struct Series {
    /// For the legend; a series without a name is not in it, and one name is there once.
    pub(crate) name: String,
    /// Series of one number have one colour; 0 to 7, and from there again.
    pub(crate) color: usize,
    pub(crate) shape: Shape,
}

/// How a series is drawn.
#[derive(Debug, Clone)]
pub(crate) enum Shape {
    /// Points joined by a line.
    Line(Vec<(f64, f64)>),
    /// Points of their own.
    Points(Vec<(f64, f64)>),
    /// The area between a low and a high value: `(x, low, high)`.
    Band(Vec<(f64, f64, f64)>),
    /// Rectangles: `(from, to, low, high)`.
    Bars(Vec<(f64, f64, f64, f64)>),
}

impl Shape {
    /// All points, those of a band or a bar by its edges.
    fn points(&self) -> Vec<(f64, f64)> {
        match self {
            Shape::Line(points) | Shape::Points(points) => points.clone(),
            Shape::Band(points) => {
                points.iter().flat_map(|&(x, low, high)| [(x, low), (x, high)]).collect()
            }
            Shape::Bars(bars) => {
                bars.iter().flat_map(|&(from, to, low, high)| [(from, low), (to, high)]).collect()
            }
        }
    }
}

impl Figure {
    /// Draws the picture into a file, in the form that its name asks for.
    pub(crate) fn save(&self, path: &Path) -> Result<(), LabError> {
        let bytes = match Format::of(path)? {
            Format::Svg => draw::svg(self)?.into_bytes(),
            Format::Png => draw::png(self)?,
        };
        fs::write(path, bytes)
            .map_err(|error| LabError::new(format!("cannot write {}: {error}", path.display())))
    }
}

enum Format {
    Svg,
    Png,
}

impl Format {
    fn of(path: &Path) -> Result<Self, LabError> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some(svg) if svg.eq_ignore_ascii_case("svg") => Ok(Self::Svg),
            Some(png) if png.eq_ignore_ascii_case("png") => Ok(Self::Png),
            _ => Err(LabError::new("the file's name must end in .svg or .png")),
        }
    }
}

/// A path on the command line whose format is known.
pub(crate) fn parse_path(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match Format::of(&path) {
        Ok(_) => Ok(path),
        Err(LabError::Message(message)) => Err(message),
        Err(LabError::NobodyReads) => Err(String::new()),
    }
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
    fn an_svg_says_what_it_shows_and_is_the_same_each_time() {
        let svg = draw::svg(&figure()).unwrap();
        for text in ["Delays", "left", "right", "retry", "delay, s", "band &amp; line", "0.1", "10"]
        {
            assert!(svg.contains(text), "{text} is missing in {svg}");
        }
        assert_eq!(svg, draw::svg(&figure()).unwrap());
    }

    /// One legend for all panels, above them: it covers nothing, and has a line more where one is too
    /// short.
    #[test]
    fn a_legend_names_each_series_once_and_above_the_panels() {
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
        let named = |number: u32| Series {
            name: format!("a series with a long name, {number}"),
            ..panel.series[0].clone()
        };
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
    fn dots_upon_each_other_are_drawn_once_and_a_bar_without_length_is_seen() {
        let mut figure = figure();
        let dots = Shape::Points(vec![(1.5, 1.0), (1.5, 1.0), (1.5, 2.0)]);
        figure.panels[0].series[1].shape = dots;
        assert_eq!(draw::svg(&figure).unwrap().matches("<circle").count(), 2);
        let before = draw::svg(&figure).unwrap().matches("<polyline").count();
        figure.panels[0].series[1].shape = Shape::Bars(vec![(1.5, 1.5, 1.0, 2.0)]);
        assert_eq!(draw::svg(&figure).unwrap().matches("<polyline").count(), before + 1);
    }

    #[test]
    fn a_png_has_text_without_any_font_of_the_system() {
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
