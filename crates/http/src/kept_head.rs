//! The head of a request, kept for another attempt.
//!
//! In flows the head of a request that is about to be sent; out flows, only if a retry is due, the
//! same head again. Its parts are not cloned for it: a clone of a `HeaderMap` costs two allocations
//! and, for every value made at run time, one more. All is copied into one buffer, as text.

use std::fmt;
use std::iter::once;
use std::ops::Range;

use bytes::Bytes;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use memchr::{Memchr, memchr, memchr_iter};

use crate::idempotency::IDEMPOTENCY_KEY;
use crate::repeatable::has_key;

/// What a header usually takes, and what is reserved for the target and the few long ones.
const USUAL: usize = 40;
const ROOM: usize = 192;

/// What ends a header's name, and what ends a line: neither can be within what it ends.
const COLON: u8 = b':';
const NEWLINE: u8 = b'\n';

/// How many lines stand before the headers.
const HEAD_LINES: usize = 4;

/// A request's head in one allocation, from which the head can be made again.
///
/// Header values that are marked [sensitive](HeaderValue::is_sensitive) are not copied: they stay
/// the shared values they are, and no second copy of a credential lies in memory.
///
/// ```
/// use http::Request;
/// use reattempt_http::KeptHead;
///
/// let request = Request::get("http://one.example/").header("accept", "*/*").body(())?;
/// let again = KeptHead::new(&request).into_parts().expect("what was legal still is");
/// assert_eq!((&again.uri, &again.headers), (request.uri(), request.headers()));
/// # Ok::<(), http::Error>(())
/// ```
pub struct KeptHead {
    /// The method, and the target's scheme, authority and path with query, a line for each, which is
    /// empty for a part that the target does not have; then a line for each header as in HTTP/1,
    /// but with neither colon nor value for one whose value is shared.
    text: Vec<u8>,
    extensions: Extensions,
    /// The values that are not in the text.
    shared: Option<Box<SharedValues>>,
    /// How many different names there are; a map holds fewer than this can count.
    names: u16,
    version: Version,
}

/// The values that are marked sensitive, in order: hardly ever more than one.
struct SharedValues {
    first: HeaderValue,
    others: Vec<HeaderValue>,
}

impl KeptHead {
    /// Keeps the head of `request`. The extensions are cloned.
    #[inline(always)]
    pub fn new<B>(request: &Request<B>) -> Self {
        let (text, shared) = write(request.method(), request.uri(), request.headers());
        Self {
            text,
            extensions: request.extensions().clone(),
            shared,
            names: u16::try_from(request.headers().keys_len()).unwrap_or(u16::MAX),
            version: request.version(),
        }
    }

    /// The head again; `None` only for one that the `http` crate would not accept itself.
    ///
    /// Its values share one more copy of the text.
    pub fn to_parts(&self) -> Option<Parts> {
        let mut head = self.parse(Bytes::copy_from_slice(&self.text))?;
        head.extensions = self.extensions.clone();
        Some(head)
    }

    /// The head again, for the last time. Its values share the text.
    pub fn into_parts(mut self) -> Option<Parts> {
        let text = Bytes::from(std::mem::take(&mut self.text));
        let mut head = self.parse(text)?;
        head.extensions = self.extensions;
        Some(head)
    }

    /// The scheme and the authority of the request's target, as far as it has them.
    pub fn origin(&self) -> (Option<&str>, Option<&str>) {
        let mut lines = self.lines().skip(1);
        let mut next = || lines.next().and_then(|line| std::str::from_utf8(line).ok());
        (next().filter(|scheme| !scheme.is_empty()), next().filter(|text| !text.is_empty()))
    }

    /// The request's target.
    pub fn uri(&self) -> Option<Uri> {
        uri(&mut Lines::of(&self.text).skip(1), |part| Bytes::copy_from_slice(&self.text[part]))
    }

    /// The request's method.
    pub fn method(&self) -> Option<Method> {
        Method::from_bytes(self.lines().next()?).ok()
    }

    /// The values of the headers with this name, in order.
    pub fn values(&self, name: &HeaderName) -> impl Iterator<Item = &[u8]> {
        let name = name.as_str().as_bytes();
        let mut shared = self.shared();
        self.lines().skip(HEAD_LINES).filter_map(move |line| match line.strip_prefix(name) {
            Some([]) => shared.next().map(HeaderValue::as_bytes),
            Some([COLON, value @ ..]) => Some(value),
            // Of another name.
            _ if self.shared.is_some() && memchr(COLON, line).is_none() => {
                shared.next();
                None
            }
            _ => None,
        })
    }

    /// Whether the request may be carried out more than once, by the same rules as
    /// [`is_repeatable`](crate::is_repeatable).
    pub fn is_repeatable(&self) -> bool {
        self.method().is_some_and(|method| method.is_idempotent())
            || has_key(self.values(&IDEMPOTENCY_KEY))
    }

    /// The head without the extensions, made of the text, whose buffer it then shares.
    fn parse(&self, text: Bytes) -> Option<Parts> {
        let (mut head, ()) = Request::new(()).into_parts();
        let mut lines = Lines::of(&text);
        head.method = Method::from_bytes(&text[lines.next()?]).ok()?;
        head.uri = uri(&mut lines, |part| text.slice(part))?;
        head.version = self.version;
        head.headers.try_reserve(self.names.into()).ok()?;
        let mut shared = self.shared();
        for line in lines {
            let (name, value) = match memchr(COLON, &text[line.clone()]) {
                Some(length) => {
                    let end = line.start + length;
                    let value = text.slice(end + 1..line.end);
                    (line.start..end, HeaderValue::from_maybe_shared(value).ok()?)
                }
                None => (line, shared.next()?.clone()),
            };
            head.headers.try_append(HeaderName::from_bytes(&text[name]).ok()?, value).ok()?;
        }
        Some(head)
    }

    /// The values that are not in the text, in order.
    fn shared(&self) -> impl Iterator<Item = &HeaderValue> {
        let shared = self.shared.as_deref();
        shared.into_iter().flat_map(|all| once(&all.first).chain(&all.others))
    }

    fn lines(&self) -> impl Iterator<Item = &[u8]> {
        Lines::of(&self.text).map(|line| &self.text[line])
    }
}

/// Where the lines of a text are, of which each one is ended.
struct Lines<'a> {
    newlines: Memchr<'a>,
    start: usize,
}

impl<'a> Lines<'a> {
    fn of(text: &'a [u8]) -> Self {
        Self { newlines: memchr_iter(NEWLINE, text), start: 0 }
    }
}

impl Iterator for Lines<'_> {
    type Item = Range<usize>;

    fn next(&mut self) -> Option<Range<usize>> {
        let end = self.newlines.next()?;
        Some(std::mem::replace(&mut self.start, end + 1)..end)
    }
}

/// The target, of its three lines.
fn uri(
    lines: &mut impl Iterator<Item = Range<usize>>,
    part: impl Fn(Range<usize>) -> Bytes,
) -> Option<Uri> {
    let mut next = || lines.next().filter(|line| !line.is_empty()).map(&part);
    let mut uri = http::uri::Parts::default();
    uri.scheme = next().map(|scheme| Scheme::try_from(&*scheme)).transpose().ok()?;
    uri.authority = next().map(Authority::from_maybe_shared).transpose().ok()?;
    uri.path_and_query = next().map(PathAndQuery::from_maybe_shared).transpose().ok()?;
    uri.try_into().ok()
}

/// The head as text, and the values that are left out of it.
fn write(method: &Method, uri: &Uri, headers: &HeaderMap) -> (Vec<u8>, Option<Box<SharedValues>>) {
    // Measuring first would cost more than what is reserved in vain.
    let mut text = Vec::with_capacity(headers.len() * USUAL + ROOM);
    text.extend_from_slice(method.as_str().as_bytes());
    text.push(NEWLINE);
    text.extend_from_slice(uri.scheme_str().unwrap_or_default().as_bytes());
    text.push(NEWLINE);
    text.extend_from_slice(uri.authority().map_or("", |authority| authority.as_str()).as_bytes());
    text.push(NEWLINE);
    text.extend_from_slice(uri.path_and_query().map_or("", |path| path.as_str()).as_bytes());
    text.push(NEWLINE);
    let mut shared = None;
    for (name, value) in headers {
        text.extend_from_slice(name.as_str().as_bytes());
        if value.is_sensitive() {
            share(&mut shared, value.clone());
        } else {
            text.push(COLON);
            text.extend_from_slice(value.as_bytes());
        }
        text.push(NEWLINE);
    }
    (text, shared)
}

#[cold]
fn share(shared: &mut Option<Box<SharedValues>>, value: HeaderValue) {
    match shared {
        Some(shared) => shared.others.push(value),
        None => *shared = Some(Box::new(SharedValues { first: value, others: Vec::new() })),
    }
}

impl fmt::Debug for KeptHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptHead")
            .field("uri", &self.uri())
            .field("headers", &self.names)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request<()> {
        let request = Request::put("https://user@one.example:8443/a?b=c")
            .version(Version::HTTP_2)
            .header("accept", "*/*")
            .header("x-many", "one")
            .header("x-other", "")
            .header("x-many", "two: three:")
            .header("x-binary", HeaderValue::from_bytes(b"\xff\x80 \t~").unwrap())
            .extension(7_u32);
        request.body(()).unwrap()
    }

    fn assert_same(again: Option<Parts>, request: &Request<()>) {
        let again = Request::from_parts(again.unwrap(), ());
        assert_eq!(again.method(), request.method());
        assert_eq!(again.uri(), request.uri());
        assert_eq!(again.version(), request.version());
        assert_eq!(again.headers(), request.headers());
        assert_eq!(again.extensions().get::<u32>(), request.extensions().get::<u32>());
        let order = |request: &Request<()>| -> Vec<_> {
            let headers = request.headers().iter();
            headers.map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        assert_eq!(order(&again), order(request));
    }

    #[test]
    fn the_head_comes_back_as_it_was_each_time() {
        let request = request();
        let kept = KeptHead::new(&request);
        assert_same(kept.to_parts(), &request);
        assert_same(kept.to_parts(), &request);
        assert_same(kept.into_parts(), &request);
    }

    #[test]
    fn every_form_of_target_comes_back() {
        let parts = |scheme: Option<&str>, authority: Option<&str>, path: Option<&str>| {
            let mut parts = http::uri::Parts::default();
            parts.scheme = scheme.map(|scheme| scheme.parse().unwrap());
            parts.authority = authority.map(|authority| authority.parse().unwrap());
            parts.path_and_query = path.map(|path| path.parse().unwrap());
            Uri::from_parts(parts).unwrap()
        };
        for uri in [
            Uri::from_static("/"),
            Uri::from_static("/a/%20b?c=d:e&f"),
            Uri::from_static("*"),
            Uri::from_static("one.example:443"),
            Uri::from_static("http://one.example"),
            Uri::from_static("http://[::1]:80/x?"),
            Uri::from_static("git+ssh://user:word@one.example/"),
            "http://one.example/\u{e9}?\u{fc}".parse().unwrap(),
            // OPTIONS * as a client of a proxy or of hyper-util asks for it.
            parts(Some("http"), Some("one.example"), Some("*")),
            parts(Some("http"), Some("one.example"), Some("?only=a-query")),
        ] {
            let request = Request::options(uri).body(()).unwrap();
            let kept = KeptHead::new(&request);
            assert_eq!(kept.uri().as_ref(), Some(request.uri()));
            let authority = request.uri().authority().map(|authority| authority.as_str());
            assert_eq!(kept.origin(), (request.uri().scheme_str(), authority));
            assert_same(kept.into_parts(), &request);
        }
        // A target without any part is sent as this one is.
        let nothing = Request::get(parts(None, None, None)).body(()).unwrap();
        assert_eq!(KeptHead::new(&nothing).uri(), Some(Uri::from_static("/")));
    }

    #[test]
    fn a_method_of_its_own_comes_back() {
        let request = Request::builder().method("PROPFIND").uri("/").body(()).unwrap();
        assert_same(KeptHead::new(&request).into_parts(), &request);
    }

    #[test]
    fn a_sensitive_value_is_shared_in_its_place_and_not_copied() {
        let mut request = request();
        let mut secret = HeaderValue::from_static("the secret");
        secret.set_sensitive(true);
        let mut other = HeaderValue::from_static("the other");
        other.set_sensitive(true);
        request.headers_mut().insert("authorization", secret.clone());
        request.headers_mut().append("x-many", other);
        request.headers_mut().append("x-many", secret);
        let kept = KeptHead::new(&request);
        let copied = kept.text.windows(10).any(|bytes| bytes == b"the secret");
        assert!(!copied);
        let again = kept.to_parts();
        let values = &again.as_ref().unwrap().headers;
        assert!(values["authorization"].is_sensitive());
        assert_same(again, &request);
        let values: Vec<_> = kept.values(&HeaderName::from_static("x-many")).collect();
        assert_eq!(values, [&b"one"[..], b"two: three:", b"the other", b"the secret"]);
    }

    #[test]
    fn headers_are_found_by_their_name() {
        let kept = KeptHead::new(&request());
        let values = |name| -> Vec<_> { kept.values(&HeaderName::from_static(name)).collect() };
        assert_eq!(values("x-many"), [&b"one"[..], b"two: three:"]);
        assert_eq!(values("x-other"), [b""]);
        // The lines of the method and the target are not headers.
        for missing in ["x-missing", "x-man", "x-many2", "put", "https"] {
            assert_eq!(values(missing), [b""; 0], "{missing}");
        }
        assert_eq!(kept.method(), Some(Method::PUT));
    }

    #[test]
    fn what_is_kept_is_as_repeatable_as_the_request() {
        let keyed = |method: Method, key: &'static str, sensitive| {
            let mut key = HeaderValue::from_static(key);
            key.set_sensitive(sensitive);
            Request::builder().method(method).header(IDEMPOTENCY_KEY, key).body(()).unwrap()
        };
        for (request, expected) in [
            (Request::put("/").body(()).unwrap(), true),
            (Request::post("/").body(()).unwrap(), false),
            (keyed(Method::POST, "a", false), true),
            (keyed(Method::POST, "a", true), true),
            (keyed(Method::PATCH, "  ", false), false),
            (keyed(Method::DELETE, "", false), true),
        ] {
            assert_eq!(KeptHead::new(&request).is_repeatable(), expected, "{request:?}");
            assert_eq!(crate::is_repeatable(request.method(), request.headers()), expected);
        }
    }

    #[test]
    fn the_longest_name_and_value_come_back() {
        let name = HeaderName::from_bytes(&[b'n'; u16::MAX as usize]).unwrap();
        let value = HeaderValue::from_bytes(&vec![b'v'; 1 << 20]).unwrap();
        let mut request = request();
        request.headers_mut().insert(name, value);
        assert_same(KeptHead::new(&request).into_parts(), &request);
    }
}
