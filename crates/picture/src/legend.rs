//! The legend: one for all panels, in lines of its own below the title.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use crate::figure::{Figure, PictureError, Series, Shape};
use crate::style::{BAND, FONT, color_of, undrawn, width_of};

/// The height of a line.
const LINE: u32 = 24;
const FONT_SIZE: u32 = 15;
/// The width of a sample, with the space that follows it.
const SAMPLE: u32 = 28;
const BETWEEN_ENTRIES: u32 = 26;

/// The names of a figure's series, in lines that fit the width.
pub(crate) struct Legend<'a> {
    lines: Vec<Vec<Entry<'a>>>,
    width: u32,
}

struct Entry<'a> {
    series: &'a Series,
    width: u32,
}

impl<'a> Legend<'a> {
    /// Creates the legend. Each name appears once, because its colour is the same in all panels.
    pub(crate) fn new(figure: &'a Figure, width: u32) -> Result<Self, PictureError> {
        let mut lines: Vec<Vec<Entry<'a>>> = Vec::new();
        for series in figure.panels.iter().flat_map(|panel| &panel.series) {
            let mut known = lines.iter().flatten();
            if series.name.is_empty() || known.any(|entry| entry.series.name == series.name) {
                continue;
            }
            let entry = Entry { series, width: SAMPLE + width_of(&series.name, FONT_SIZE)? };
            match lines.last_mut() {
                Some(line) if length(line) + BETWEEN_ENTRIES + entry.width <= width => {
                    line.push(entry);
                }
                _ => lines.push(vec![entry]),
            }
        }
        Ok(Self { lines, width })
    }

    pub(crate) fn height(&self) -> u32 {
        LINE * u32::try_from(self.lines.len()).unwrap_or(u32::MAX / LINE)
    }

    /// Draws each line in the middle of the area.
    pub(crate) fn paint<B: DrawingBackend>(&self, area: &DrawingArea<B, Shift>, dots: u32) -> Result<(), PictureError> {
        let mut y = LINE / 2;
        for line in &self.lines {
            let mut x = self.width.saturating_sub(length(line)) / 2;
            for entry in line {
                entry.paint(area, (x, y), dots)?;
                x += entry.width + BETWEEN_ENTRIES;
            }
            y += LINE;
        }
        Ok(())
    }
}

/// Returns the width of a line.
fn length(line: &[Entry<'_>]) -> u32 {
    line.iter().map(|entry| entry.width + BETWEEN_ENTRIES).sum::<u32>() - BETWEEN_ENTRIES
}

impl Entry<'_> {
    fn paint<B: DrawingBackend>(
        &self,
        area: &DrawingArea<B, Shift>,
        (x, y): (u32, u32),
        dots: u32,
    ) -> Result<(), PictureError> {
        let at = |x: u32, y: u32| {
            let dots = |length: u32| i32::try_from(length * dots).map_err(undrawn);
            Ok::<_, PictureError>((dots(x)?, dots(y)?))
        };
        let color = color_of(self.series.color);
        let drawn = match self.series.shape {
            Shape::Line(_) => {
                let ends = [at(x, y)?, at(x + 20, y)?];
                area.draw(&PathElement::new(ends, color.stroke_width(3 * dots)))
            }
            Shape::Points(_) => area.draw(&Circle::new(at(x + 14, y)?, 4 * dots, color.filled())),
            Shape::Band(_) | Shape::Bars(_) => {
                let strength = if let Shape::Band(_) = self.series.shape { BAND } else { 1.0 };
                let corners = [at(x, y - 6)?, at(x + 20, y + 6)?];
                area.draw(&Rectangle::new(corners, color.mix(strength).filled()))
            }
        };
        drawn.map_err(undrawn)?;
        let style = (FONT, FONT_SIZE * dots).into_font().color(&BLACK);
        let style = style.pos(Pos::new(HPos::Left, VPos::Center));
        area.draw_text(&self.series.name, &style, at(x + SAMPLE, y)?).map_err(undrawn)
    }
}
