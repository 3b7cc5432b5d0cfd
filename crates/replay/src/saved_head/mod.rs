//! The head of a request, saved before the first attempt and restored only for a retry.
//!
//! Every call saves its head, but few restore it. The head is therefore saved in a single buffer; the rows `head` and
//! `template` of `benches/` measure the benefit. Cloning a `HeaderMap` costs two allocations, plus one for each value
//! created at run time. A single buffer costs one allocation, or none if the thread has a spare buffer from an earlier
//! call. It contains pairs of strings, each pair preceded by its two lengths.

mod buffer;
mod pairs;
mod shapes;
#[cfg(test)]
mod tests;
mod write;

use std::fmt;
use std::iter::once;
use std::ops::Range;
use std::str::from_utf8;

use bytes::Bytes;
use http::request::Parts;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

use buffer::Buffer;
use pairs::Pairs;
use write::write;

/// The separator after a scheme.
const SEPARATOR: &[u8] = b"://";

/// A request's head (method, target, version, headers and extensions), saved for another attempt.
///
/// Saving a head of typical length allocates at most once, plus once each for extensions and sensitive values. Header
/// values marked as [sensitive](HeaderValue::is_sensitive) are shared, not copied, so that credentials are not
/// duplicated in memory.
///
/// ```
/// use http::Request;
/// use reattempt_replay::SavedHead;
///
/// let request = Request::get("http://one.example/").header("accept", "*/*").body(())?;
/// let mut again = http::Request::new(());
/// SavedHead::new(&request).move_to(&mut again);
/// assert_eq!((again.uri(), again.headers()), (request.uri(), request.headers()));
/// # Ok::<(), http::Error>(())
/// ```
pub struct SavedHead {
    /// The pairs: method and path with query, scheme with `://` and authority, then each header's name and value. A
    /// missing part of the target is empty. The whole buffer is empty if the head cannot be restored.
    pairs: Buffer,
    extensions: Extensions,
    /// The values that are not in the buffer.
    shared: Option<Box<SharedValues>>,
    /// The number of distinct names. The type is wide enough for any map.
    names: u16,
    version: Version,
}

/// The sensitive values, in order. There is rarely more than one.
struct SharedValues {
    first: HeaderValue,
    others: Vec<HeaderValue>,
}

impl SavedHead {
    /// Saves the head of `request`. The extensions are cloned.
    #[inline(always)]
    pub fn new<B>(request: &Request<B>) -> Self {
        let (method, uri, headers) = (request.method(), request.uri(), request.headers());
        Self::of(method, uri, headers, request.extensions(), request.version())
    }

    /// Saves the head of a request from its parts. The extensions are cloned.
    #[inline(always)]
    pub fn of_parts(head: &Parts) -> Self {
        Self::of(&head.method, &head.uri, &head.headers, &head.extensions, head.version)
    }

    #[inline(always)]
    fn of(method: &Method, uri: &Uri, headers: &HeaderMap, extensions: &Extensions, version: Version) -> Self {
        let (pairs, shared) = write(method, uri, headers);
        Self {
            pairs: Buffer::new(pairs),
            extensions: extensions.clone(),
            shared,
            names: u16::try_from(headers.keys_len()).unwrap_or(u16::MAX),
            version,
        }
    }

    /// Returns `false` if the head cannot be restored because it is longer than 4 GiB.
    #[inline]
    pub fn is_restorable(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// Copies this head to `request`, which must have no headers. The header values share this head's buffer.
    ///
    /// A head that is not [restorable](Self::is_restorable) is replaced by one that clients and servers reject: CONNECT
    /// without a target or headers.
    #[inline]
    pub fn copy_to<B>(&mut self, request: &mut Request<B>) {
        *request.extensions_mut() = self.extensions.clone();
        let buffer = self.pairs.share();
        self.restore(&buffer, request);
    }

    /// Moves this head to `request`, which must have no headers. A head that is not [restorable](Self::is_restorable)
    /// is replaced as in [`copy_to`](Self::copy_to).
    #[inline]
    pub fn move_to<B>(mut self, request: &mut Request<B>) {
        *request.extensions_mut() = std::mem::take(&mut self.extensions);
        let buffer = self.pairs.take();
        self.restore(&buffer, request);
    }

    /// Returns the scheme of the request's target, if it has one.
    pub fn scheme(&self) -> Option<&str> {
        self.scheme_and_authority().0
    }

    /// Returns the authority of the request's target, if it has one.
    pub fn authority(&self) -> Option<&str> {
        self.scheme_and_authority().1
    }

    /// Returns the scheme and the authority of the request's target, if present.
    #[inline]
    pub fn scheme_and_authority(&self) -> (Option<&str>, Option<&str>) {
        let Some((scheme, authority)) = Pairs(&self.pairs).nth(1) else { return (None, None) };
        let scheme = match scheme {
            b"http://" => Some("http"),
            b"https://" => Some("https"),
            other => other.strip_suffix(SEPARATOR).and_then(|other| from_utf8(other).ok()),
        };
        (scheme, authority.and_then(text))
    }

    /// Returns the scheme and the authority of the request's target, such as `https://one.example`, if it has both.
    pub fn origin(&self) -> Option<&str> {
        let mut pairs = Pairs(&self.pairs);
        let (scheme, authority) = pairs.nth(1)?;
        let end = self.pairs.len() - pairs.0.len();
        let start = end.checked_sub(scheme.len() + authority?.len())?;
        text(self.pairs.get(start..end)?).filter(|_| !scheme.is_empty())
    }

    /// Returns the request's target, or `None` if the head is not [restorable](Self::is_restorable).
    pub fn uri(&self) -> Option<Uri> {
        let part = |range: Range<usize>| Bytes::copy_from_slice(&self.pairs[range]);
        let (_, uri) = target(&mut Pairs(&self.pairs), self.pairs.len(), &part)?;
        Some(uri)
    }

    /// Returns the request's method, or `None` if the head is not [restorable](Self::is_restorable).
    pub fn method(&self) -> Option<Method> {
        let (method, _) = Pairs(&self.pairs).next()?;
        Method::from_bytes(method).ok()
    }

    /// Returns the name of the request's method.
    pub fn method_name(&self) -> Option<&str> {
        let (method, _) = Pairs(&self.pairs).next()?;
        from_utf8(method).ok()
    }

    /// Returns the path and query of the request's target. The path is empty if the target has none.
    pub fn path_and_query(&self) -> Option<&str> {
        let (_, path) = Pairs(&self.pairs).next()?;
        from_utf8(path?).ok()
    }

    /// Returns `true` if the head has a header with this name.
    pub fn contains(&self, name: &HeaderName) -> bool {
        let name = name.as_str().as_bytes();
        self.headers().any(|(other, _)| other == name)
    }

    /// Returns the values of the headers with this name, in order.
    pub fn values(&self, name: &HeaderName) -> impl Iterator<Item = &[u8]> {
        let name = name.as_str().as_bytes();
        let mut shared = self.shared();
        self.headers().filter_map(move |(other, value)| {
            let value = match value {
                Some(value) => value,
                None => shared.next()?.as_bytes(),
            };
            (other == name).then_some(value)
        })
    }

    /// Sets the head of `request`, except the extensions, from `buffer`. The values then share the buffer.
    #[inline]
    fn restore<B>(&self, buffer: &Bytes, request: &mut Request<B>) {
        *request.version_mut() = self.version;
        let target = self.parse(buffer, request.headers_mut());
        // A restorable head always has a target, because every part was valid when it was written.
        let (method, uri) = target.unwrap_or_else(|| {
            request.headers_mut().clear();
            (Method::CONNECT, Uri::default())
        });
        *request.method_mut() = method;
        *request.uri_mut() = uri;
    }

    fn parse(&self, buffer: &Bytes, headers: &mut HeaderMap) -> Option<(Method, Uri)> {
        let mut pairs = Pairs(buffer);
        let target = target(&mut pairs, buffer.len(), &|part| buffer.slice(part))?;
        let mark = shapes::mark(pairs.clone());
        if let Some(mut blank) = shapes::blank(mark)
            && self.fill(buffer, pairs.clone(), &mut blank).is_some()
        {
            *headers = blank;
            return Some(target);
        }
        self.append_all(buffer, pairs, headers)?;
        shapes::learn(mark, headers);
        Some(target)
    }

    /// Sets the values of a map with this head's names. Returns `None` if its names differ.
    #[inline]
    fn fill(&self, buffer: &Bytes, mut pairs: Pairs<'_>, blank: &mut HeaderMap) -> Option<()> {
        let mut shared = self.shared();
        let mut places = blank.iter_mut();
        while let Some((name, value)) = pairs.next() {
            let (held, place) = places.next()?;
            if held.as_str().as_bytes() != name {
                return None;
            }
            *place = restored(buffer, &pairs, value, &mut shared)?;
        }
        places.next().is_none().then_some(())
    }

    #[inline(never)]
    fn append_all(&self, buffer: &Bytes, mut pairs: Pairs<'_>, headers: &mut HeaderMap) -> Option<()> {
        headers.try_reserve(self.names.into()).ok()?;
        let mut shared = self.shared();
        while let Some((name, value)) = pairs.next() {
            // `from_bytes` rejects quotation marks, which HTTP/2 clients may send.
            let name = HeaderName::from_lowercase(name).ok()?;
            headers.try_append(name, restored(buffer, &pairs, value, &mut shared)?).ok()?;
        }
        Some(())
    }

    /// Returns the headers: all pairs after the method and the target.
    fn headers(&self) -> Pairs<'_> {
        let mut pairs = Pairs(&self.pairs);
        pairs.next();
        pairs.next();
        pairs
    }

    /// Returns the values that are not in the buffer, in order.
    fn shared(&self) -> impl Iterator<Item = &HeaderValue> {
        let shared = self.shared.as_deref();
        shared.into_iter().flat_map(|all| once(&all.first).chain(&all.others))
    }
}

/// Returns the value from the buffer, or else the next shared value.
#[inline]
fn restored<'a>(
    buffer: &Bytes,
    rest: &Pairs<'_>,
    value: Option<&[u8]>,
    shared: &mut impl Iterator<Item = &'a HeaderValue>,
) -> Option<HeaderValue> {
    let Some(value) = value else { return shared.next().cloned() };
    let end = buffer.len() - rest.0.len();
    HeaderValue::from_maybe_shared(buffer.slice(end - value.len()..end)).ok()
}

/// Returns a part of the target as text, unless the part is missing.
fn text(part: &[u8]) -> Option<&str> {
    from_utf8(part).ok().filter(|text| !text.is_empty())
}

/// Reads the method and the target, which are the first two pairs in a buffer of this `length`. `part` slices the
/// buffer.
fn target(pairs: &mut Pairs<'_>, length: usize, part: &dyn Fn(Range<usize>) -> Bytes) -> Option<(Method, Uri)> {
    let (method, path) = pairs.next()?;
    let (path, end_of_path) = (path?, length - pairs.0.len());
    let (scheme, authority) = pairs.next()?;
    let (authority, end) = (authority?, length - pairs.0.len());
    let mut uri = http::uri::Parts::default();
    if let Some(scheme) = scheme.strip_suffix(SEPARATOR) {
        uri.scheme = Some(Scheme::try_from(scheme).ok()?);
    }
    if !authority.is_empty() {
        let authority = part(end - authority.len()..end);
        uri.authority = Some(Authority::from_maybe_shared(authority).ok()?);
    }
    if !path.is_empty() {
        let path = part(end_of_path - path.len()..end_of_path);
        uri.path_and_query = Some(PathAndQuery::from_maybe_shared(path).ok()?);
    }
    Some((Method::from_bytes(method).ok()?, uri.try_into().ok()?))
}

/// Omits the target and the header values, which may contain credentials.
impl fmt::Debug for SavedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedHead")
            .field("method", &self.method())
            .field("headers", &self.names)
            .finish_non_exhaustive()
    }
}
