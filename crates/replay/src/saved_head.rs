//! The head of a request, saved in one buffer, which stays one buffer as long as a row of `benches/` pays for it.
//!
//! The head is saved before the request is sent, and is restored only for a retry. Cloning a `HeaderMap` costs
//! two allocations, and one more for each value made at run time. One buffer costs one: it holds pairs of
//! strings, each pair after its two lengths.

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;
use std::iter::once;
use std::ops::{Deref, Range};
use std::str::from_utf8;

use bytes::Bytes;
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version, header};

/// The usual size of a header, and the size reserved for the target and long headers.
const USUAL: usize = 40;
const ROOM: usize = 192;

/// The second length of a pair whose second string, a header's value, is shared and not in the buffer.
const SHARED: u64 = u32::MAX as u64;

/// The characters after a scheme.
const SEPARATOR: &[u8] = b"://";

/// A request's head, saved in one allocation and restored for another attempt.
///
/// Header values that are marked [sensitive](HeaderValue::is_sensitive) are shared and not copied, so that memory
/// holds no second copy of a credential.
///
/// ```
/// use http::Request;
/// use reattempt_replay::SavedHead;
///
/// let request = Request::get("http://one.example/").header("accept", "*/*").body(())?;
/// let mut again = http::Request::new(());
/// SavedHead::new(&request).move_to(&mut again).expect("what was legal still is");
/// assert_eq!((again.uri(), again.headers()), (request.uri(), request.headers()));
/// # Ok::<(), http::Error>(())
/// ```
pub struct SavedHead {
    /// The method and the target's path with query, its scheme with `://` and its authority, and each
    /// header's name and value. A part that the target does not have is empty. The whole buffer is empty
    /// if the head cannot be restored.
    pairs: Buffer,
    extensions: Extensions,
    /// The values that are not in the buffer.
    shared: Option<Box<SharedValues>>,
    /// The number of different names; a map holds fewer than this can count.
    names: u16,
    version: Version,
}

/// A buffer that is shared once a head was made of it.
enum Buffer {
    Own(Vec<u8>),
    Shared(Bytes),
}

impl Buffer {
    /// Another share of the buffer.
    fn share(&mut self) -> Bytes {
        let shared = match self {
            Buffer::Own(own) => Bytes::from(std::mem::take(own)),
            Buffer::Shared(shared) => return shared.clone(),
        };
        *self = Buffer::Shared(shared.clone());
        shared
    }

    fn into_shared(self) -> Bytes {
        match self {
            Buffer::Own(own) => own.into(),
            Buffer::Shared(shared) => shared,
        }
    }
}

impl Deref for Buffer {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        match self {
            Buffer::Own(own) => own,
            Buffer::Shared(shared) => shared,
        }
    }
}

/// The values that are marked sensitive, in order: hardly ever more than one.
struct SharedValues {
    first: HeaderValue,
    others: Vec<HeaderValue>,
}

impl SavedHead {
    /// Saves the head of `request`. The extensions are cloned.
    #[inline(always)]
    pub fn new<B>(request: &Request<B>) -> Self {
        let (pairs, shared) = write(request.method(), request.uri(), request.headers());
        Self {
            pairs: Buffer::Own(pairs),
            extensions: request.extensions().clone(),
            shared,
            names: u16::try_from(request.headers().keys_len()).unwrap_or(u16::MAX),
            version: request.version(),
        }
    }

    /// Returns `false` if the head cannot be restored: it is longer than 4 GiB.
    #[inline]
    pub fn is_restorable(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// Copies this head to `request`, which has no headers yet. Returns `None` only if the head is not
    /// [restorable](Self::is_restorable).
    ///
    /// The header values share the buffer of this head.
    #[must_use = "without it the request has no head"]
    #[inline]
    pub fn copy_to<B>(&mut self, request: &mut Request<B>) -> Option<()> {
        *request.extensions_mut() = self.extensions.clone();
        let buffer = self.pairs.share();
        self.parse(&buffer, request)
    }

    /// Moves this head to `request`, as [`copy_to`](Self::copy_to) copies it.
    #[must_use = "without it the request has no head"]
    #[inline]
    pub fn move_to<B>(mut self, request: &mut Request<B>) -> Option<()> {
        *request.extensions_mut() = std::mem::take(&mut self.extensions);
        let pairs = std::mem::replace(&mut self.pairs, Buffer::Own(Vec::new()));
        self.parse(&pairs.into_shared(), request)
    }

    /// Returns the scheme of the request's target, if it has one.
    pub fn scheme(&self) -> Option<&str> {
        let (scheme, _) = Pairs(&self.pairs).nth(1)?;
        from_utf8(scheme.strip_suffix(SEPARATOR)?).ok()
    }

    /// Returns the authority of the request's target, if it has one.
    pub fn authority(&self) -> Option<&str> {
        let (_, authority) = Pairs(&self.pairs).nth(1)?;
        text(authority?)
    }

    /// Returns the scheme and the authority of the request's target, such as `https://one.example`, if it has both.
    pub fn origin(&self) -> Option<&str> {
        let mut pairs = Pairs(&self.pairs);
        let (scheme, authority) = pairs.nth(1)?;
        let end = self.pairs.len() - pairs.0.len();
        let start = end.checked_sub(scheme.len() + authority?.len())?;
        text(self.pairs.get(start..end)?).filter(|_| !scheme.is_empty())
    }

    /// Returns the request's target.
    pub fn uri(&self) -> Option<Uri> {
        let part = |range| Bytes::copy_from_slice(&self.pairs[range]);
        let (_, uri) = target(&mut Pairs(&self.pairs), self.pairs.len(), part)?;
        Some(uri)
    }

    /// Returns the request's method.
    pub fn method(&self) -> Option<Method> {
        let (method, _) = Pairs(&self.pairs).next()?;
        Method::from_bytes(method).ok()
    }

    /// Returns the name of the request's method.
    pub fn method_name(&self) -> Option<&str> {
        let (method, _) = Pairs(&self.pairs).next()?;
        from_utf8(method).ok()
    }

    /// Returns the path of the request's target and the query behind it. The path is empty if the target has
    /// none.
    pub fn path_and_query(&self) -> Option<&str> {
        let (_, path) = Pairs(&self.pairs).next()?;
        from_utf8(path?).ok()
    }

    /// Returns `true` if there is a header with this name.
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

    /// Returns `text`, such as the destination of the request. Where it is a part of this head it stays in
    /// the buffer, and the rest of the buffer is cleared.
    ///
    /// A head may contain credentials. Use this for the part that is still needed once the request is not sent
    /// again.
    ///
    /// ```
    /// use http::Request;
    /// use reattempt_replay::SavedHead;
    ///
    /// let request = Request::get("http://one.example/").header("authorization", "secret").body(())?;
    /// let authority = SavedHead::new(&request).into_text(|head| head.authority().unwrap_or("").into());
    /// assert_eq!(authority, "one.example");
    /// # Ok::<(), http::Error>(())
    /// ```
    #[must_use = "nothing else is left of the head"]
    pub fn into_text(self, text: impl FnOnce(&Self) -> Cow<'_, str>) -> String {
        let part = match text(&self) {
            Cow::Owned(text) => return text,
            Cow::Borrowed(text) => match position(&self.pairs, text) {
                Some(part) => part,
                None => return text.to_owned(),
            },
        };
        let mut buffer = match self.pairs {
            Buffer::Own(own) => own,
            Buffer::Shared(shared) => shared[part.clone()].to_vec(),
        };
        if buffer.len() > part.len() {
            keep_only(&mut buffer, part.clone());
            buffer.truncate(part.len());
        }
        String::from_utf8(buffer).unwrap_or_default()
    }

    /// Gives `request` the head but for the extensions, made of `buffer`, which it then shares.
    fn parse<B>(&self, buffer: &Bytes, request: &mut Request<B>) -> Option<()> {
        let mut pairs = Pairs(buffer);
        let (method, uri) = target(&mut pairs, buffer.len(), |part| buffer.slice(part))?;
        *request.method_mut() = method;
        *request.uri_mut() = uri;
        *request.version_mut() = self.version;
        self.parse_headers(buffer, pairs, request.headers_mut())
    }

    fn parse_headers(
        &self,
        buffer: &Bytes,
        mut pairs: Pairs<'_>,
        headers: &mut HeaderMap,
    ) -> Option<()> {
        headers.try_reserve(self.names.into()).ok()?;
        let mut shared = self.shared();
        while let Some((name, value)) = pairs.next() {
            let name = parse_name(name)?;
            let value = match value {
                Some(value) => {
                    let end = buffer.len() - pairs.0.len();
                    HeaderValue::from_maybe_shared(buffer.slice(end - value.len()..end)).ok()?
                }
                None => shared.next()?.clone(),
            };
            headers.try_append(name, value).ok()?;
        }
        Some(())
    }

    /// The headers: all that comes after the method and the target.
    fn headers(&self) -> Pairs<'_> {
        let mut pairs = Pairs(&self.pairs);
        pairs.next();
        pairs.next();
        pairs
    }

    /// The values that are not in the buffer, in order.
    fn shared(&self) -> impl Iterator<Item = &HeaderValue> {
        let shared = self.shared.as_deref();
        shared.into_iter().flat_map(|all| once(&all.first).chain(&all.others))
    }
}

/// The strings of each pair in a buffer; the second is missing where it is not in the buffer. What it
/// holds is the rest of the buffer.
struct Pairs<'a>(&'a [u8]);

impl<'a> Iterator for Pairs<'a> {
    type Item = (&'a [u8], Option<&'a [u8]>);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (lengths, rest) = self.0.split_first_chunk()?;
        let lengths = u64::from_le_bytes(*lengths);
        let (first, rest) = rest.split_at_checked(usize::try_from(lengths >> 32).ok()?)?;
        let second = lengths & SHARED;
        if second == SHARED {
            self.0 = rest;
            return Some((first, None));
        }
        let (second, rest) = rest.split_at_checked(usize::try_from(second).ok()?)?;
        self.0 = rest;
        Some((first, Some(second)))
    }
}

// Names that nearly every traced request has, and the `http` crate does not.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");
const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The name of a header. To parse one costs most of what it costs to make a header again, so the
/// usual ones are looked for first.
fn parse_name(name: &[u8]) -> Option<HeaderName> {
    Some(match name {
        b"accept" => header::ACCEPT,
        b"accept-encoding" => header::ACCEPT_ENCODING,
        b"accept-language" => header::ACCEPT_LANGUAGE,
        b"authorization" => header::AUTHORIZATION,
        b"content-length" => header::CONTENT_LENGTH,
        b"content-type" => header::CONTENT_TYPE,
        b"cookie" => header::COOKIE,
        b"host" => header::HOST,
        b"te" => header::TE,
        b"traceparent" => TRACEPARENT,
        b"tracestate" => TRACESTATE,
        b"user-agent" => header::USER_AGENT,
        b"x-request-id" => X_REQUEST_ID,
        // `from_bytes` refuses a quotation mark, which HTTP/2 clients may send.
        other => HeaderName::from_lowercase(other).ok()?,
    })
}

/// The authority of a target, unless it is missing.
fn text(part: &[u8]) -> Option<&str> {
    from_utf8(part).ok().filter(|text| !text.is_empty())
}

/// The method and the target: the first two pairs of a buffer of this `length`, of which `part` makes
/// the parts that are shared.
fn target(
    pairs: &mut Pairs<'_>,
    length: usize,
    part: impl Fn(Range<usize>) -> Bytes,
) -> Option<(Method, Uri)> {
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

/// The head as pairs, and the values that are left out of them.
fn write(method: &Method, uri: &Uri, headers: &HeaderMap) -> (Vec<u8>, Option<Box<SharedValues>>) {
    // Measuring first would cost more than what is reserved in vain.
    let mut pairs = Vec::with_capacity(headers.len() * USUAL + ROOM);
    let method = method.as_str().as_bytes();
    let authority = uri.authority().map_or("", |authority| authority.as_str());
    let path = match uri.path_and_query() {
        // The path of a target without any part is empty, though its `PathAndQuery` is "/".
        Some(path) if !uri.path().is_empty() => path.as_str(),
        _ => "",
    };
    push(&mut pairs, method, path.as_bytes());
    let scheme = uri.scheme_str().map(|scheme| [scheme.as_bytes(), SEPARATOR]).unwrap_or_default();
    let length = scheme[0].len() + scheme[1].len();
    pairs.extend_from_slice(&lengths(length, authority.len()));
    for part in [scheme[0], scheme[1], authority.as_bytes()] {
        pairs.extend_from_slice(part);
    }
    let mut shared = None;
    for (name, value) in headers {
        let name = name.as_str().as_bytes();
        if value.is_sensitive() {
            push_alone(&mut pairs, name);
            share(&mut shared, value.clone());
        } else {
            push(&mut pairs, name, value.as_bytes());
        }
    }
    // Each string is restored by the type that it is from, so only the lengths and the parts of the
    // target together could be refused. Every length of a head below 4 GiB fits its half of a word.
    // `Uri::from_parts` takes a scheme with both other parts, or one of them alone.
    let whole = !authority.is_empty() && !path.is_empty();
    if pairs.len() as u64 >= SHARED || uri.scheme_str().is_some() != whole {
        pairs.clear();
    }
    (pairs, shared)
}

#[inline]
fn push(pairs: &mut Vec<u8>, first: &[u8], second: &[u8]) {
    pairs.extend_from_slice(&lengths(first.len(), second.len()));
    pairs.extend_from_slice(first);
    pairs.extend_from_slice(second);
}

#[inline]
fn lengths(first: usize, second: usize) -> [u8; 8] {
    ((first as u64) << 32 | second as u64).to_le_bytes()
}

/// Adds a pair whose second string is not in the buffer.
fn push_alone(pairs: &mut Vec<u8>, first: &[u8]) {
    pairs.extend_from_slice(&((first.len() as u64) << 32 | SHARED).to_le_bytes());
    pairs.extend_from_slice(first);
}

#[cold]
fn share(shared: &mut Option<Box<SharedValues>>, value: HeaderValue) {
    match shared {
        Some(shared) => shared.others.push(value),
        None => *shared = Some(Box::new(SharedValues { first: value, others: Vec::new() })),
    }
}

/// The place of `text` in the buffer, if that is where it lies.
fn position(buffer: &[u8], text: &str) -> Option<Range<usize>> {
    let start = text.as_ptr().addr().checked_sub(buffer.as_ptr().addr())?;
    let end = start.checked_add(text.len())?;
    (end <= buffer.len()).then_some(start..end)
}

/// Moves `part` to the front of the buffer, and clears the rest.
fn keep_only(buffer: &mut [u8], part: Range<usize>) {
    let length = part.len();
    buffer.copy_within(part, 0);
    buffer[length..].fill(0);
}

/// Without the target and the values of the headers, which may contain credentials.
impl fmt::Debug for SavedHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SavedHead")
            .field("method", &self.method())
            .field("headers", &self.names)
            .finish_non_exhaustive()
    }
}
