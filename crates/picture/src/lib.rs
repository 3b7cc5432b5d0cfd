//! Pictures of the laboratory and of the examples: figures as plain data, and the files that show them.
//!
//! Input: a [`Figure`], which has panels of named series over two axes. Output: an SVG, whose text
//! the viewer draws in its own font, or a PNG, whose text is drawn in the bundled font. Only this
//! crate uses the plotting library.

#![forbid(unsafe_code)]

mod figure;
mod legend;
mod render;
mod style;
mod ticks;

use std::fs;
use std::path::{Path, PathBuf};

pub use figure::{Axis, Figure, Panel, PictureError, Series, Shape};

impl Figure {
    /// Returns the picture as an SVG.
    ///
    /// # Errors
    ///
    /// Returns an error if the picture cannot be drawn.
    pub fn svg(&self) -> Result<String, PictureError> {
        render::svg(self)
    }

    /// Draws the picture into a file, as an SVG or a PNG by the file's extension.
    ///
    /// # Errors
    ///
    /// Returns an error for another extension, or if the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), PictureError> {
        let bytes = match Format::of(path).map_err(PictureError::new)? {
            Format::Svg => render::svg(self)?.into_bytes(),
            Format::Png => render::png(self)?,
        };
        fs::write(path, bytes).map_err(|error| PictureError::new(format!("cannot write {}: {error}", path.display())))
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
///
/// # Errors
///
/// Returns a message for another extension.
pub fn parse_path(text: &str) -> Result<PathBuf, String> {
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
        let svg = render::svg(&figure()).unwrap();
        for text in ["Delays", "left", "right", "retry", "delay, s", "band &amp; line", "0.1", "10"] {
            assert!(svg.contains(text), "{text} is missing in {svg}");
        }
        assert_eq!(svg, render::svg(&figure()).unwrap());
    }

    /// A single legend above all panels hides no data. A second line starts when the first is full.
    #[test]
    fn legend_names_each_series_once() {
        let mut figure = figure();
        let panel = figure.panels[0].clone();
        figure.panels.push(panel.clone());
        let svg = render::svg(&figure).unwrap();
        assert_eq!(svg.matches("band &amp; line").count(), 1);
        let place = |text: &str| {
            let (before, _) = svg.split_at(svg.find(text).unwrap());
            let (_, y) = before.rsplit_once(" y=\"").unwrap();
            y.split_once('"').unwrap().0.parse::<u32>().unwrap()
        };
        assert!(place("Delays") < place("band &amp;") && place("band &amp;") < place("left"));

        let height = |figure: &Figure| {
            let svg = render::svg(figure).unwrap();
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
            let svg = render::svg(figure).unwrap();
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
        assert_eq!(render::svg(&figure).unwrap().matches("<circle").count(), 2);
        let before = render::svg(&figure).unwrap().matches("<polyline").count();
        figure.panels[0].series[1].shape = Shape::Bars(vec![(1.5, 1.5, 1.0, 2.0)]);
        assert_eq!(render::svg(&figure).unwrap().matches("<polyline").count(), before + 1);
    }

    #[test]
    fn png_text_needs_no_system_font() {
        let size = |png: &[u8]| {
            let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            reader.next_frame(&mut pixels).unwrap();
            pixels.iter().filter(|part| **part < 100).count()
        };
        let with_text = size(&render::png(&figure()).unwrap());
        let mut silent = figure();
        silent.title.clear();
        let without = size(&render::png(&silent).unwrap());
        assert!(with_text > without + 100, "{with_text} dark dots, {without} without the title");
    }

    #[test]
    fn a_value_that_is_not_a_number_is_left_out() {
        let mut figure = figure();
        let line = vec![(1.0, f64::NAN), (f64::INFINITY, 1.0), (2.0, -1.0)];
        figure.panels[0].series[1].shape = Shape::Line(line);
        assert!(render::svg(&figure).is_ok());
    }

    #[test]
    fn only_two_formats_are_known() {
        assert!(parse_path("a.PNG").is_ok());
        assert_eq!(parse_path("a.jpg").unwrap_err(), "the file's name must end in .svg or .png");
        assert!(parse_path("svg").is_err());
    }
}
