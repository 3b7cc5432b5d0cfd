//! Readers of response bodies.

#[cfg(feature = "json")]
mod json;
mod xml;

#[cfg(feature = "json")]
pub use json::json_any;
pub use xml::xml_error_code;
