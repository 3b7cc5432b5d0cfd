//! The font, the colours and the error that the parts of a picture share.

use std::fmt::Display;
use std::sync::OnceLock;

use plotters::prelude::*;

use crate::figure::PictureError;

/// Eight colours that remain distinct with any kind of colour vision (from Okabe and Ito).
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

pub(crate) const FONT: &str = "sans-serif";

/// Registers the bundled font under a name that viewers of an SVG map to a font of their own.
pub(crate) fn register_font() -> Result<(), PictureError> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let font = include_bytes!("../fonts/DejaVuSans.ttf");
    let registered = *REGISTERED.get_or_init(|| plotters::style::register_font(FONT, FontStyle::Normal, font).is_ok());
    if registered { Ok(()) } else { Err(PictureError::new("the bundled font cannot be read")) }
}

/// Returns the width of a text in this size.
pub(crate) fn width_of(text: &str, size: u32) -> Result<u32, PictureError> {
    let ((left, _), (right, _)) = (FONT, size).into_font().layout_box(text).map_err(undrawn)?;
    Ok(right.abs_diff(left))
}

/// The opacity of a band.
pub(crate) const BAND: f64 = 0.25;

pub(crate) fn color_of(number: usize) -> RGBColor {
    COLORS[number % COLORS.len()]
}

pub(crate) fn undrawn(error: impl Display) -> PictureError {
    PictureError::new(format!("the picture cannot be drawn: {error}"))
}
