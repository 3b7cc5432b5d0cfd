//! A reader of XML bodies, which looks for an error code.
//!
//! Bodies come from any server, so the reader is total: each byte is read a few times, nothing is kept, and nothing
//! nests.

// BI-6

/// The longest error code that is read, in bytes.
const LONGEST_CODE: usize = 128;

/// Returns the error code of an XML document: the `Code` of a root `Error`, or of the `Error` in a root
/// `ErrorResponse`.
///
/// Blanks before the document are skipped, because servers send them to keep a connection open. Returns `None` for
/// every other document, for one with a document type, and for a code that is empty, longer than 128 bytes or contains
/// anything but ASCII letters, digits and `.`, `_`, `-`.
///
/// ```
/// # use reattempt_http::xml_error_code;
/// let body = b"  \n<?xml version=\"1.0\"?>\n<Error><Code>SlowDown</Code><Message>Reduce it.</Message></Error>";
/// assert_eq!(xml_error_code(body), Some("SlowDown"));
/// assert_eq!(xml_error_code(b"<Result><Code>SlowDown</Code></Result>"), None);
/// ```
#[must_use]
pub fn xml_error_code(body: &[u8]) -> Option<&str> {
    let mut rest = body.trim_ascii_start();
    rest = rest.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(rest).trim_ascii_start();
    // The depth below the root, and the depth at which the elements are those of the path.
    let (mut depth, mut followed) = (0_usize, 0_usize);
    let mut path: &[&[u8]] = &[];
    loop {
        let (tag, after) = next_tag(rest)?;
        rest = after;
        if depth == 0 && !tag.opens {
            return None;
        }
        if !tag.opens {
            depth -= 1;
            followed = followed.min(depth);
            if depth == 0 {
                return None;
            }
            continue;
        }
        if depth == 0 {
            path = match tag.name {
                b"Error" => &[b"Code"],
                b"ErrorResponse" => &[b"Error", b"Code"],
                _ => return None,
            };
        } else if followed + 1 == depth && path.get(depth - 1).is_some_and(|step| *step == tag.name) {
            if depth == path.len() {
                return code_at(rest);
            }
            followed = if tag.closes { followed } else { depth };
        }
        if tag.closes && depth == 0 {
            return None;
        }
        depth += usize::from(!tag.closes);
    }
}

/// Returns the text at the start of an element's content.
fn code_at(content: &[u8]) -> Option<&str> {
    let end = content.iter().take(LONGEST_CODE + 64).position(|byte| *byte == b'<')?;
    let code = content[..end].trim_ascii();
    let is_code = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_valid = !code.is_empty() && code.len() <= LONGEST_CODE && code.iter().all(is_code);
    if is_valid { std::str::from_utf8(code).ok() } else { None }
}

/// A tag of an XML document.
struct Tag<'a> {
    name: &'a [u8],
    /// `true` for a start tag.
    opens: bool,
    /// `true` for an element without content.
    closes: bool,
}

/// Returns the next tag, and what follows it. Text, comments, instructions and CDATA sections are skipped.
fn next_tag(mut rest: &[u8]) -> Option<(Tag<'_>, &[u8])> {
    loop {
        rest = &rest[rest.iter().position(|byte| *byte == b'<')?..];
        let skipped = [(&b"<!--"[..], &b"-->"[..]), (b"<![CDATA[", b"]]>"), (b"<?", b"?>")]
            .into_iter()
            .find_map(|(start, end)| rest.strip_prefix(start).map(|inside| (inside, end)));
        match skipped {
            Some((inside, end)) => rest = &inside[find(inside, end)? + end.len()..],
            None => break,
        }
    }
    let inside = &rest[1..];
    let end = end_of_tag(inside)?;
    let (tag, after) = (&inside[..end], &inside[end + 1..]);
    let (opens, tag) = tag.strip_prefix(b"/").map_or((true, tag), |tag| (false, tag));
    let name = tag.split(|byte| byte.is_ascii_whitespace() || *byte == b'/').next().unwrap_or_default();
    let is_name = name.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_' || !byte.is_ascii());
    is_name.then_some((Tag { name, opens, closes: opens && tag.ends_with(b"/") }, after))
}

/// Returns the position of the `>` that ends a tag, which is not in a quoted value.
fn end_of_tag(tag: &[u8]) -> Option<usize> {
    let mut quote = None;
    tag.iter().position(|&byte| match quote {
        Some(open) => {
            quote = (byte != open).then_some(open);
            false
        }
        None => {
            quote = matches!(byte, b'"' | b'\'').then_some(byte);
            byte == b'>'
        }
    })
}

/// Returns the position of a short text. The search is linear, because it starts anew only at the first byte of `text`.
fn find(rest: &[u8], text: &[u8]) -> Option<usize> {
    rest.windows(text.len()).position(|window| window == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    // BI-6
    #[test]
    fn xml_codes_are_found_in_errors() {
        let found = [
            "<Error><Code>SlowDown</Code></Error>",
            " \r\n\t<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error>\n <Message>m</Message>\n <Code> SlowDown </Code></Error>",
            "\u{feff}<Error a=\"1>2\"><Code>SlowDown</Code>",
            "<!-- <Error> --><Error><A><Code>No</Code></A><B/><Code>SlowDown</Code></Error>",
            "<ErrorResponse xmlns='u'><Error><Type>Sender</Type><Code>SlowDown</Code></Error></ErrorResponse>",
            "<Error><![CDATA[<Code>No</Code>]]><Code>SlowDown</Code></Error>",
        ];
        for body in found {
            assert_eq!(xml_error_code(body.as_bytes()), Some("SlowDown"), "{body}");
        }
        let none = [
            "",
            "<",
            "<Error",
            "<Error>",
            "<Error/>",
            "</Error>",
            "<Error></Error><Code>SlowDown</Code>",
            "text",
            "<Result><Error><Code>SlowDown</Code></Error></Result>",
            "<Error><A><Code>SlowDown</Code></A></Error>",
            "<ErrorResponse><Code>SlowDown</Code></ErrorResponse>",
            "<Error><Code></Code></Error>",
            "<Error><Code>&amp;</Code></Error>",
            "<Error><Code/></Error>",
            "<Error><Code>Slow",
            "< Error><Code>SlowDown</Code>",
            "<ErrorResponse><Error></Error><Code>SlowDown</Code></ErrorResponse>",
            "<!DOCTYPE x [<!ENTITY e \"v\">]><Error><Code>SlowDown</Code></Error>",
            "{\"Code\": \"SlowDown\"}",
        ];
        for body in none {
            assert_eq!(xml_error_code(body.as_bytes()), None, "{body}");
        }
        let long = format!("<Error><Code>{}</Code></Error>", "x".repeat(129));
        assert_eq!(xml_error_code(long.as_bytes()), None);
    }
}
