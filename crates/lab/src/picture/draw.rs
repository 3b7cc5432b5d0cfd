//! Draws a figure with plotters, into the text of an SVG or the bytes of a PNG.

use std::fmt::Display;
use std::sync::OnceLock;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::ticks::Scale;
use super::{Figure, Panel, Series, Shape};
use crate::error::LabError;

/// Eight colours that people with any kind of colour vision can tell apart (Okabe and Ito's).
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 94, 240),
    RGBColor(80, 80, 80),
];

/// The width of one panel, and the height of a row of them.
const PANEL: (u32, u32) = (480, 330);
const TITLE_HEIGHT: u32 = 40;
/// The least width, so that a title has its place.
const LEAST_WIDTH: u32 = 720;

const FONT: &str = "sans-serif";

/// The bundled font under the name by which viewers of an SVG find one of their own.
fn register_font() -> Result<(), LabError> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let font = include_bytes!("../../fonts/DejaVuSans.ttf");
    let registered = *REGISTERED
        .get_or_init(|| plotters::style::register_font(FONT, FontStyle::Normal, font).is_ok());
    if registered { Ok(()) } else { Err(LabError::new("the bundled font cannot be read")) }
}

pub(super) fn svg(figure: &Figure) -> Result<String, LabError> {
    let mut text = String::new();
    paint(figure, SVGBackend::with_string(&mut text, size(figure)))?;
    Ok(text)
}

pub(super) fn png(figure: &Figure) -> Result<Vec<u8>, LabError> {
    let (width, height) = size(figure);
    let bytes = usize::try_from(u64::from(width) * u64::from(height) * 3).map_err(undrawn)?;
    let mut pixels = vec![0; bytes];
    paint(figure, BitMapBackend::with_buffer(&mut pixels, (width, height)))?;
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().map_err(undrawn)?;
    writer.write_image_data(&pixels).map_err(undrawn)?;
    writer.finish().map_err(undrawn)?;
    Ok(file)
}

fn columns(figure: &Figure) -> usize {
    figure.columns.clamp(1, figure.panels.len().max(1))
}

fn rows(figure: &Figure) -> usize {
    figure.panels.len().div_ceil(columns(figure)).max(1)
}

fn size(figure: &Figure) -> (u32, u32) {
    let times = |length: u32, count: usize| length.saturating_mul(count.try_into().unwrap_or(100));
    let width = times(PANEL.0, columns(figure)).max(LEAST_WIDTH);
    (width, times(PANEL.1, rows(figure)) + TITLE_HEIGHT)
}

fn paint<B: DrawingBackend>(figure: &Figure, backend: B) -> Result<(), LabError> {
    register_font()?;
    let root = backend.into_drawing_area();
    root.fill(&WHITE).map_err(undrawn)?;
    let root = root.titled(&figure.title, (FONT, 22)).map_err(undrawn)?;
    let areas = root.split_evenly((rows(figure), columns(figure)));
    for (panel, area) in figure.panels.iter().zip(&areas) {
        paint_panel(panel, area)?;
    }
    root.present().map_err(undrawn)
}

fn paint_panel<B: DrawingBackend>(
    panel: &Panel,
    area: &DrawingArea<B, Shift>,
) -> Result<(), LabError> {
    let all = || panel.series.iter().flat_map(|series| series.shape.points());
    let x = Scale::new(&panel.x, all().map(|(x, _)| x));
    let y = Scale::new(&panel.y, all().map(|(_, y)| y));
    let mut builder = ChartBuilder::on(area);
    builder.margin(10).margin_right(24).x_label_area_size(42).y_label_area_size(62);
    if !panel.title.is_empty() {
        builder.caption(&panel.title, (FONT, 17));
    }
    let mut chart = builder.build_cartesian_2d(x, y).map_err(undrawn)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_desc(&panel.x.label)
        .y_desc(&panel.y.label)
        .label_style((FONT, 14))
        .axis_desc_style((FONT, 15))
        .draw()
        .map_err(undrawn)?;

    let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    for Series { name, color, shape } in &panel.series {
        let color = COLORS[color % COLORS.len()];
        let drawn = match shape {
            Shape::Line(points) => {
                let points = points.iter().copied().filter(finite);
                chart
                    .draw_series(LineSeries::new(points, color.stroke_width(2)))
                    .map_err(undrawn)?
            }
            Shape::Points(points) => {
                let points = points.iter().copied().filter(finite);
                let dots = points.map(|point| Circle::new(point, 2, color.mix(0.6).filled()));
                chart.draw_series(dots).map_err(undrawn)?
            }
            Shape::Band(points) => {
                let low = points.iter().map(|&(at, low, _)| (at, low));
                let high = points.iter().rev().map(|&(at, _, high)| (at, high));
                let edge: Vec<_> = low.chain(high).filter(finite).collect();
                let area = Polygon::new(edge, color.mix(0.25));
                chart.draw_series(std::iter::once(area)).map_err(undrawn)?
            }
        };
        if !name.is_empty() {
            let sample =
                move |(x, y)| Rectangle::new([(x, y - 4), (x + 14, y + 4)], color.filled());
            drawn.label(name).legend(sample);
        }
    }
    if panel.series.iter().any(|series| !series.name.is_empty()) {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .margin(8)
            .legend_area_size(20)
            .background_style(WHITE.mix(0.8))
            .label_font((FONT, 14))
            .draw()
            .map_err(undrawn)?;
    }
    Ok(())
}

fn undrawn(error: impl Display) -> LabError {
    LabError::new(format!("the picture cannot be drawn: {error}"))
}
