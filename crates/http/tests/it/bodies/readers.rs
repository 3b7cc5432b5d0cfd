//! The property of the readers of bodies, for any bytes.

use reattempt_http::{json_any, xml_error_code};

const PATHS: [&[&str]; 5] =
    [&[], &["code"], &["errors", "*", "extensions", "code"], &["*", "*", "*", "*"], &["items", "*", "*", "status"]];

/// Asserts that every reader returns, in what bounds, and that no prefix of a JSON object is one.
pub(crate) fn check(body: &[u8]) {
    for path in PATHS {
        let mut called = 0_usize;
        let any = json_any(body, path, &mut |value| {
            called += 1;
            assert!(value.len() <= 3 * body.len() + 32);
            true
        });
        assert!(called <= 1, "the first match is enough");
        if any && body.trim_ascii().ends_with(b"}") {
            let end = body.trim_ascii_end().len() - 1;
            assert!(!json_any(&body[..end], path, &mut |_| true), "a prefix");
        }
    }
    if let Some(code) = xml_error_code(body) {
        assert!(!code.is_empty() && code.len() <= 128 && code.is_ascii());
        assert!(body.windows(code.len()).any(|window| window == code.as_bytes()));
    }
}
