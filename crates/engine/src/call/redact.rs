//! Redaction of credentials, which can be in the userinfo and query of URLs and in header values. All text from errors,
//! requests and responses that the crate prints passes through this module.

use std::fmt;

#[cfg(feature = "http")]
use http::HeaderMap;

/// Returns `text` without the userinfo, query and fragment of any URL in it, and without the userinfo of any host in it
/// that has no scheme (`user:password@host`).
///
/// Each byte is read only a few times, because a peer may control much of the text.
pub fn redacted(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_inclusive(ends_word) {
        let url = word.trim_end_matches(ends_word);
        redact_word(url, &mut out);
        out.push_str(&word[url.len()..]);
    }
    out
}

/// Returns a value that is no valid URL, host or key, for an error. Everything up to the last `@` may be a credential,
/// and so may everything after a `?` or `#`.
pub fn redacted_input(text: &str) -> String {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| &text[..scheme.len() + 3]);
    let scheme = if scheme.contains(['@', '?', '#']) { "" } else { scheme };
    let rest = text.rsplit_once('@').map_or(&text[scheme.len()..], |(_, address)| address);
    let (rest, query) = rest.split_at(rest.find(['?', '#']).unwrap_or(rest.len()));
    redacted(&[scheme, rest].concat()) + if query.is_empty() { "" } else { "?..." }
}

/// Returns `true` if a URL ends at this character.
pub(super) fn ends_word(c: char) -> bool {
    c.is_whitespace() || matches!(c, '"' | '<' | '>')
}

/// Appends a word to `out`. Everything after its first query is treated as part of that query.
fn redact_word(word: &str, out: &mut String) {
    if !word.contains("://") && word.contains('@') {
        // What comes before is punctuation of the text around.
        let begin = word.find(|c: char| c.is_alphanumeric()).unwrap_or(0);
        out.extend([&word[..begin], without_userinfo(&word[begin..])]);
        return;
    }
    let (mut rest, mut query) = (word, "");
    let mut ends: &[char] = &['/', '?', '#'];
    while let Some((before, after)) = rest.split_once("://") {
        let after = if ends.len() > 1 { without_userinfo(after) } else { after };
        let (authority, path) = after.split_at(after.find(ends).unwrap_or(after.len()));
        let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
        out.extend([before, "://", host]);
        rest = path;
        // A path may contain another URL, but no query.
        if ends.len() > 1 {
            (rest, query) = path.split_at(path.find(['?', '#']).unwrap_or(path.len()));
            ends = &['/'];
        }
    }
    out.push_str(rest);
    if !query.is_empty() {
        // The surrounding text may, for example, close a parenthesis.
        let closing = query.trim_end_matches([')', ']', '}', '\'', '`', ',', ';', ':', '.']);
        out.extend(["?...", &query[closing.len().max(1)..]]);
    }
}

/// Returns the text after the userinfo of the host that it begins with. A password may contain any character: what
/// follows a colon and is no port belongs to one, if an `@` follows.
fn without_userinfo(text: &str) -> &str {
    let (authority, rest) = text.split_at(text.find(['/', '?', '#']).unwrap_or(text.len()));
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let has_password = || !authority.contains('[') && authority.split_once(':').is_some_and(|(_, port)| !is_port(port));
    match (authority.rfind('@'), rest.rfind('@')) {
        (_, Some(at)) if has_password() && !rest[..at].contains("://") => &rest[at + 1..],
        (Some(at), _) => &text[at + 1..],
        (None, _) => text,
    }
}

/// The debug output of a value, such as an error, without credentials.
pub struct Redacted<T>(pub T);

impl<T: fmt::Debug> fmt::Debug for Redacted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = if f.alternate() { format!("{:#?}", self.0) } else { format!("{:?}", self.0) };
        f.write_str(&redacted(&text))
    }
}

#[cfg(feature = "http")]
/// The names of headers, without their values, which may be credentials.
pub(crate) struct Names<'a>(pub(crate) &'a HeaderMap);

#[cfg(feature = "http")]
impl fmt::Debug for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.0.keys().map(http::HeaderName::as_str);
        f.debug_list().entries(names).finish()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]
mod tests {
    #[cfg(feature = "http")]
    use http_body_util::Full;

    use super::{redacted, redacted_input};
    #[cfg(feature = "http")]
    use crate::protocol::{Added, CloneRequest, Http, Replay, Saved};

    /// Returns the `Debug` form of the saved part of `request`.
    #[cfg(feature = "http")]
    fn shown<P: Replay<Request, Saved: std::fmt::Debug>, Request>(protocol: &P, request: Request) -> String {
        let mut saved = None;
        protocol.save(request, Added::default(), &mut saved);
        let saved = saved.unwrap();
        format!("{saved:?} {saved:#?} {}", protocol.destination_of(saved.view()))
    }

    #[cfg(feature = "http")]
    #[test]
    fn kept_requests_show_no_credentials() {
        let request = http::Request::put("http://user:secret@one.example/?key=secret")
            .header("authorization", "secret")
            .header("cookie", "secret")
            .body(Full::<bytes::Bytes>::from("body"))
            .unwrap();
        let mut texts = vec![shown(&Http::default(), request.clone())];
        texts.push(shown(&CloneRequest::new(()), request));
        #[cfg(feature = "reqwest")]
        {
            let url = "http://user:secret@one.example/?key=secret".parse().unwrap();
            let mut request = reqwest::Request::new(http::Method::PUT, url);
            request.headers_mut().insert("authorization", "secret".parse().unwrap());
            texts.push(shown(&Http::default(), request));
        }
        for text in texts {
            assert!(!text.contains("secret"), "{text}");
        }
    }

    #[test]
    fn invalid_input_keeps_its_host() {
        for (text, expected) in [
            ("one example", "one example"),
            ("user:pa ss@one example", "one example"),
            ("https://user:pa/ss@one example/a?token#b", "https://one example/a?..."),
            ("one.example?token=t", "one.example?..."),
            ("a@b://c", "b://c"),
            ("?a://b", "?..."),
            ("", ""),
        ] {
            assert_eq!(redacted_input(text), expected, "{text}");
        }
    }

    #[test]
    fn url_in_a_text_keeps_host_and_path() {
        for (text, expected) in [
            ("no URL: a?b=c", "no URL: a?b=c"),
            ("http://one.example", "http://one.example"),
            ("http://one.example/a/@b", "http://one.example/a/@b"),
            ("for url (http://u:p@one.example:80/a?k=v#f)", "for url (http://one.example:80/a?...)"),
            ("http://one.example?k=v: refused", "http://one.example?...: refused"),
            ("http://one.example/#token=t", "http://one.example/?..."),
            ("http://a?k=)v b http://u@c/", "http://a?... b http://c/"),
            ("\"https://u@a/\", \"https://b/?k\"", "\"https://a/\", \"https://b/?...\""),
            ("http://p@a/http://u:p@b/c?d", "http://a/http://b/c?..."),
            ("http://p@a/http://u:p@b/c", "http://a/http://b/c"),
            ("://?", "://?..."),
            ("://", "://"),
            ("http://u@é/ü?ö)", "http://é/ü?...)"),
            ("user:pass@one.example:80/a", "one.example:80/a"),
            ("(user:pass@one.example), `token@two`", "(one.example), `two`"),
            ("no user:pa/ss@one.example/a", "no one.example/a"),
            ("no user:pa?s@s@one.example", "no one.example"),
            ("http://user:pa/ss@one.example/a", "http://one.example/a"),
            ("http://user:pa#ss@one.example/a?b", "http://one.example/a?..."),
            ("one.example/a/@b one.example:80/@b", "one.example/a/@b one.example:80/@b"),
            ("http://[::1]:80/@b", "http://[::1]:80/@b"),
            ("@ a@ @b", "  @b"),
        ] {
            assert_eq!(redacted(text), expected, "{text}");
        }
    }
}
