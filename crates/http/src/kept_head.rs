//! The head of a request, kept for another attempt.
//!
//! In flows the head of a request that is about to be sent; out flows, only if a retry is due, the
//! same head again. Its parts are not cloned for it: a clone of a `HeaderMap` costs two allocations
//! and, for every value made at run time, one more. All is copied into one buffer instead: pairs of
//! strings, each pair behind the two lengths.

use std::fmt;
use std::iter::once;
use std::ops::Range;

use bytes::Bytes;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use crate::idempotency::IDEMPOTENCY_KEY;
use crate::repeatable::has_key;

/// What a header usually takes, and what is reserved for the target and the few long ones.
const USUAL: usize = 40;
const ROOM: usize = 192;

/// What stands before each pair: the length of its first string in the upper half of a word, that
/// of the second in the lower half.
const LENGTHS: usize = size_of::<u64>();

/// In place of a value's length: the value is not in the buffer but among the shared ones.
const SHARED: u64 = u32::MAX as u64;

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
    /// The method and the target's scheme, its authority and its path with query, and each header's
    /// name and value. A part that the target does not have is empty.
    pairs: Vec<u8>,
    extensions: Extensions,
    /// The values that are not in the buffer.
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
        let (pairs, shared) = write(request.method(), request.uri(), request.headers());
        Self {
            pairs,
            extensions: request.extensions().clone(),
            shared,
            names: u16::try_from(request.headers().keys_len()).unwrap_or(u16::MAX),
            version: request.version(),
        }
    }

    /// The head again; `None` only for one that the `http` crate would not accept itself.
    ///
    /// Its values share one more copy of the buffer.
    pub fn to_parts(&self) -> Option<Parts> {
        let mut head = self.parse(Bytes::copy_from_slice(&self.pairs))?;
        head.extensions = self.extensions.clone();
        Some(head)
    }

    /// The head again, for the last time. Its values share the buffer.
    pub fn into_parts(mut self) -> Option<Parts> {
        let pairs = Bytes::from(std::mem::take(&mut self.pairs));
        let mut head = self.parse(pairs)?;
        head.extensions = self.extensions;
        Some(head)
    }

    /// The scheme and the authority of the request's target, as far as it has them.
    pub fn origin(&self) -> (Option<&str>, Option<&str>) {
        let mut pairs = Pairs::of(&self.pairs);
        let text = |part: Range<usize>| std::str::from_utf8(&self.pairs[part]).ok();
        let scheme = pairs.next().and_then(|(_, scheme)| text(scheme?));
        let authority = pairs.next().and_then(|(authority, _)| text(authority));
        (scheme.filter(|text| !text.is_empty()), authority.filter(|text| !text.is_empty()))
    }

    /// The request's target.
    pub fn uri(&self) -> Option<Uri> {
        let (_, uri) =
            target(&mut Pairs::of(&self.pairs), |part| Bytes::copy_from_slice(&self.pairs[part]))?;
        Some(uri)
    }

    /// The request's method.
    pub fn method(&self) -> Option<Method> {
        let (method, _) = Pairs::of(&self.pairs).next()?;
        Method::from_bytes(&self.pairs[method]).ok()
    }

    /// The values of the headers with this name, in order.
    pub fn values(&self, name: &HeaderName) -> impl Iterator<Item = &[u8]> {
        let name = name.as_str().as_bytes();
        let mut shared = self.shared();
        Pairs::of(&self.pairs).skip(2).filter_map(move |(other, value)| {
            let value = match value {
                Some(value) => &self.pairs[value],
                None => shared.next()?.as_bytes(),
            };
            (&self.pairs[other] == name).then_some(value)
        })
    }

    /// Whether the request may be carried out more than once, by the same rules as
    /// [`is_repeatable`](crate::is_repeatable).
    pub fn is_repeatable(&self) -> bool {
        self.method().is_some_and(|method| method.is_idempotent())
            || has_key(self.values(&IDEMPOTENCY_KEY))
    }

    /// The head without the extensions, made of `buffer`, a copy of the own one, which it then shares.
    fn parse(&self, buffer: Bytes) -> Option<Parts> {
        let (mut head, ()) = Request::new(()).into_parts();
        let mut pairs = Pairs::of(&buffer);
        (head.method, head.uri) = target(&mut pairs, |part| buffer.slice(part))?;
        head.version = self.version;
        head.headers.try_reserve(self.names.into()).ok()?;
        let mut shared = self.shared();
        for (name, value) in pairs {
            let name = HeaderName::from_bytes(&buffer[name]).ok()?;
            let value = match value {
                Some(value) => HeaderValue::from_maybe_shared(buffer.slice(value)).ok()?,
                None => shared.next()?.clone(),
            };
            head.headers.try_append(name, value).ok()?;
        }
        Some(head)
    }

    /// The values that are not in the buffer, in order.
    fn shared(&self) -> impl Iterator<Item = &HeaderValue> {
        let shared = self.shared.as_deref();
        shared.into_iter().flat_map(|all| once(&all.first).chain(&all.others))
    }
}

/// Where in a buffer the strings of each pair are; the second is missing where it is shared.
struct Pairs<'a> {
    buffer: &'a [u8],
    at: usize,
}

impl<'a> Pairs<'a> {
    fn of(buffer: &'a [u8]) -> Self {
        Self { buffer, at: 0 }
    }
}

impl Iterator for Pairs<'_> {
    type Item = (Range<usize>, Option<Range<usize>>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let lengths = u64::from_le_bytes(*self.buffer.get(self.at..)?.first_chunk::<LENGTHS>()?);
        let (first, second) = (lengths >> 32, lengths & SHARED);
        let start = self.at + LENGTHS;
        let middle = start + usize::try_from(first).ok()?;
        if second == SHARED {
            self.at = middle;
            return Some((start..middle, None));
        }
        self.at = middle + usize::try_from(second).ok()?;
        Some((start..middle, Some(middle..self.at)))
    }
}

/// The method and the target, of the first two pairs.
fn target(pairs: &mut Pairs<'_>, part: impl Fn(Range<usize>) -> Bytes) -> Option<(Method, Uri)> {
    let buffer = pairs.buffer;
    let ((method, scheme), (authority, path)) = (pairs.next()?, pairs.next()?);
    let present = |range: Option<Range<usize>>| range.filter(|range| !range.is_empty());
    let mut uri = http::uri::Parts::default();
    uri.scheme = present(scheme).map(|range| Scheme::try_from(&buffer[range])).transpose().ok()?;
    let authority = present(Some(authority)).map(&part);
    uri.authority = authority.map(Authority::from_maybe_shared).transpose().ok()?;
    let path = present(path).map(&part);
    uri.path_and_query = path.map(PathAndQuery::from_maybe_shared).transpose().ok()?;
    Some((Method::from_bytes(&buffer[method]).ok()?, uri.try_into().ok()?))
}

/// The head as pairs, and the values that are left out of them.
fn write(method: &Method, uri: &Uri, headers: &HeaderMap) -> (Vec<u8>, Option<Box<SharedValues>>) {
    // Measuring first would cost more than what is reserved in vain.
    let mut pairs = Vec::with_capacity(headers.len() * USUAL + ROOM);
    let scheme = uri.scheme_str().unwrap_or_default();
    push(&mut pairs, method.as_str().as_bytes(), scheme.as_bytes());
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let path = uri.path_and_query().map_or("", |path| path.as_str());
    push(&mut pairs, authority.as_bytes(), path.as_bytes());
    let mut shared = None;
    for (name, value) in headers {
        let name = name.as_str().as_bytes();
        if value.is_sensitive() {
            pairs.extend_from_slice(&((name.len() as u64) << 32 | SHARED).to_le_bytes());
            pairs.extend_from_slice(name);
            share(&mut shared, value.clone());
        } else {
            push(&mut pairs, name, value.as_bytes());
        }
    }
    // Within a head of less than 4 GiB every length fits its half of a word. Nobody would take a longer
    // one twice.
    if pairs.len() as u64 >= SHARED {
        pairs.clear();
    }
    (pairs, shared)
}

#[inline]
fn push(pairs: &mut Vec<u8>, first: &[u8], second: &[u8]) {
    pairs.extend_from_slice(&((first.len() as u64) << 32 | second.len() as u64).to_le_bytes());
    pairs.extend_from_slice(first);
    pairs.extend_from_slice(second);
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
        let copied = kept.pairs.windows(10).any(|bytes| bytes == b"the secret");
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
