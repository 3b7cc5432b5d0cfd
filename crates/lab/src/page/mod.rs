//! The page of a result: one HTML file with its picture and its tables, which loads nothing.
//!
//! Input: the document that `--json` prints, and the command's picture. Output: a page whose script makes tables of the
//! document that can be sorted, and pictures that can be enlarged. Its policy forbids every request.

use serde::Serialize;

use crate::error::LabError;
use crate::picture::Figure;

/// The namespace that only an SVG outside of a page needs.
const NAMESPACE: &str = " xmlns=\"http://www.w3.org/2000/svg\"";

/// Returns the page of a command with this heading.
pub(crate) fn page(heading: &str, document: &impl Serialize, figure: Option<&Figure>) -> Result<String, LabError> {
    let heading = escaped(heading);
    // Nothing in the document can end its element.
    let document = serde_json::to_string(document)?.replace('<', "\\u003c");
    let picture = match figure {
        Some(figure) => {
            let svg = figure.svg()?.replacen(NAMESPACE, "", 1);
            format!(
                "<figure>\n{svg}\n<figcaption><p>Drag over a part to enlarge it; a double click shows all of it.</p>\
                 </figcaption>\n</figure>\n"
            )
        }
        None => String::new(),
    };
    let (style, script, version) = (include_str!("page.css"), include_str!("page.js"), env!("CARGO_PKG_VERSION"));
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; \
         script-src 'unsafe-inline'\">\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n<title>{heading}</title>\n\
         <style>\n{style}</style>\n</head>\n<body>\n<h1>{heading}</h1>\n{picture}<main></main>\n\
         <noscript><p>The tables need scripts.</p></noscript>\n<p>reattempt {version}; times in seconds.</p>\n\
         <script type=\"application/json\" id=\"data\">{document}</script>\n<script>\n{script}</script>\n\
         </body>\n</html>\n"
    ))
}

/// Returns a text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::{Axis, Panel, Series, Shape};

    const HOSTILE: &str = "</script><script>alert(1)</script><!--\"'&";

    fn figure(name: &str) -> Figure {
        let series = Series { name: name.to_owned(), color: 0, shape: Shape::Line(vec![(0.0, 1.0), (1.0, 2.0)]) };
        let (x, y) = (Axis::from_zero(name), Axis::from_zero(name));
        let panel = Panel { title: name.to_owned(), x, y, series: vec![series] };
        Figure { title: name.to_owned(), panels: vec![panel], columns: 1 }
    }

    #[test]
    fn hostile_names_end_no_element() {
        let page = page(HOSTILE, &serde_json::json!({ HOSTILE: [HOSTILE] }), Some(&figure(HOSTILE))).unwrap();
        let plain = super::page("x", &0, Some(&figure("x"))).unwrap();
        for tag in ["<script", "</script", "<!--", "<svg", "</svg"] {
            assert_eq!(page.matches(tag).count(), plain.matches(tag).count(), "{tag}");
        }
        assert!(!page.contains("alert(1)</script"), "{page}");
    }

    #[test]
    fn document_is_the_same_after_escaping() {
        let document = serde_json::json!({ "name": HOSTILE });
        let page = page("x", &document, None).unwrap();
        let (_, rest) = page.split_once("id=\"data\">").unwrap();
        let read: serde_json::Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
        assert_eq!(read, document);
    }
}
