//! Drawing of a figure with plotters, as the text of an SVG or the bytes of a PNG.

use std::collections::HashSet;

use plotters::coord::Shift;
use plotters::prelude::*;

use crate::figure::{Figure, Panel, PictureError, Series, Shape};
use crate::legend::Legend;
use crate::style::{BAND, FONT, color_of, register_font, undrawn, width_of};
use crate::ticks::Scale;

/// The width of one panel, and the height of a row of them.
const PANEL: (u32, u32) = (415, 330);
/// The most panels side by side. Two are as wide as a page on GitHub, which shrinks wider pictures with their text.
const MOST_COLUMNS: usize = 2;
const TITLE_HEIGHT: u32 = 46;
/// The least width, which leaves room for the title.
const LEAST_WIDTH: u32 = 720;
/// The dots of a PNG for each unit of length, for smooth letters.
const DOTS: u32 = 2;

pub(crate) fn svg(figure: &Figure) -> Result<String, PictureError> {
    let sheet = Sheet::new(figure, 1)?;
    let mut text = String::new();
    sheet.paint(SVGBackend::with_string(&mut text, sheet.size()))?;
    Ok(text)
}

pub(crate) fn png(figure: &Figure) -> Result<Vec<u8>, PictureError> {
    let sheet = Sheet::new(figure, DOTS)?;
    let (width, height) = sheet.size();
    let bytes = usize::try_from(u64::from(width) * u64::from(height) * 3).map_err(undrawn)?;
    let mut pixels = vec![0; bytes];
    sheet.paint(BitMapBackend::with_buffer(&mut pixels, (width, height)))?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(undrawn)?;
    writer.write_image_data(&pixels).map_err(undrawn)?;
    writer.finish().map_err(undrawn)?;
    Ok(file)
}

/// A figure on a sheet of a known size.
struct Sheet<'a> {
    figure: &'a Figure,
    legend: Legend<'a>,
    columns: usize,
    rows: usize,
    width: u32,
    /// The number of dots in a unit of length.
    dots: u32,
}

impl<'a> Sheet<'a> {
    fn new(figure: &'a Figure, dots: u32) -> Result<Self, PictureError> {
        register_font()?;
        let columns = figure.columns.clamp(1, figure.panels.len().clamp(1, MOST_COLUMNS));
        let rows = figure.panels.len().div_ceil(columns).max(1);
        let width = times(PANEL.0, columns).max(LEAST_WIDTH);
        let legend = Legend::new(figure, width)?;
        Ok(Self { figure, legend, columns, rows, width, dots })
    }

    /// Returns width and height in dots.
    fn size(&self) -> (u32, u32) {
        let height = TITLE_HEIGHT + self.legend.height() + times(PANEL.1, self.rows);
        (self.width * self.dots, height * self.dots)
    }

    fn paint<B: DrawingBackend>(&self, backend: B) -> Result<(), PictureError> {
        let dots = self.dots;
        let root = backend.into_drawing_area();
        root.fill(&WHITE).map_err(undrawn)?;
        let (title, rest) = root.split_vertically(TITLE_HEIGHT * dots);
        let title = title.margin(12 * dots, 0, 0, 0);
        let size = fitting(&self.figure.title, 22, self.width - 20)?;
        title.titled(&self.figure.title, (FONT, size * f64::from(dots))).map_err(undrawn)?;
        let (legend, panels) = rest.split_vertically(self.legend.height() * dots);
        self.legend.paint(&legend, dots)?;
        let areas = panels.split_evenly((self.rows, self.columns));
        for (panel, area) in self.figure.panels.iter().zip(&areas) {
            paint_panel(panel, area, dots)?;
        }
        root.present().map_err(undrawn)
    }
}

fn times(length: u32, count: usize) -> u32 {
    length.saturating_mul(count.try_into().unwrap_or(100))
}

fn paint_panel<B: DrawingBackend>(panel: &Panel, area: &DrawingArea<B, Shift>, dots: u32) -> Result<(), PictureError> {
    let all = || panel.series.iter().flat_map(|series| series.shape.points());
    let x = Scale::exact(&panel.x, all().map(|(x, _)| x));
    let y = Scale::rounded(&panel.y, all().map(|(_, y)| y));
    let mut builder = ChartBuilder::on(area);
    builder.margin(10 * dots).margin_right(24 * dots);
    builder.x_label_area_size(42 * dots).y_label_area_size(62 * dots);
    if !panel.title.is_empty() {
        let size = fitting(&panel.title, 17, PANEL.0 - 20)?;
        builder.caption(&panel.title, (FONT, size * f64::from(dots)));
    }
    let mut chart = builder.build_cartesian_2d(x, y).map_err(undrawn)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12).stroke_width(dots))
        .axis_style(BLACK.stroke_width(dots))
        .set_all_tick_mark_size(5 * dots)
        .x_desc(&panel.x.label)
        .y_desc(&panel.y.label)
        .label_style((FONT, 14 * dots))
        .axis_desc_style((FONT, 15 * dots))
        .draw()
        .map_err(undrawn)?;

    let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    for Series { color, shape, .. } in &panel.series {
        let color = color_of(*color);
        match shape {
            Shape::Line(points) => {
                let points = points.iter().copied().filter(finite);
                let line = LineSeries::new(points, color.stroke_width(2 * dots));
                chart.draw_series(line).map_err(undrawn)?;
            }
            Shape::Points(points) => {
                // Dots at the same place are drawn once, because there may be millions.
                let mut drawn = HashSet::new();
                let points = points.iter().copied().filter(finite);
                let points = points.filter(|point| drawn.insert(chart.backend_coord(point)));
                let points: Vec<_> = points.collect();
                let dot = |point| Circle::new(point, 2 * dots, color.mix(0.6).filled());
                chart.draw_series(points.into_iter().map(dot)).map_err(undrawn)?;
            }
            Shape::Band(points) => {
                let low = points.iter().map(|&(at, low, _)| (at, low));
                let high = points.iter().rev().map(|&(at, _, high)| (at, high));
                let edge: Vec<_> = low.chain(high).filter(finite).collect();
                let area = Polygon::new(edge, color.mix(BAND));
                chart.draw_series(std::iter::once(area)).map_err(undrawn)?;
            }
            Shape::Bars(bars) => {
                // The left edge keeps even the shortest bar visible.
                let edge = |&(from, _, low, high): &(f64, f64, f64, f64)| {
                    PathElement::new([(from, low), (from, high)], color.stroke_width(2 * dots))
                };
                let bar = |&(from, to, low, high): &(f64, f64, f64, f64)| {
                    Rectangle::new([(from, low), (to, high)], color.filled())
                };
                chart.draw_series(bars.iter().map(edge)).map_err(undrawn)?;
                chart.draw_series(bars.iter().map(bar)).map_err(undrawn)?;
            }
        }
    }
    Ok(())
}

/// Returns this size, or a smaller one in which the text fits the width.
fn fitting(text: &str, size: u32, width: u32) -> Result<f64, PictureError> {
    let needed = f64::from(width_of(text, size)?.max(1));
    Ok(f64::from(size) * (f64::from(width) / needed).min(1.0))
}
