//! The head of a request, kept for another attempt.
//!
//! In flows the head of a request that is about to be sent; out flows, only if a retry is due, the
//! same head again. A `HeaderMap` is not cloned for it: that costs two allocations and, for every
//! value made at run time, one more. Names and values are copied into one buffer instead.

use std::fmt;

use http::request::Parts;
use http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, Request, Uri, Version};

/// Above this bit of a value's length: the value is not in the buffer but among the shared ones.
const SHARED: u32 = 1 << 31;

/// What stands before each name and value: their lengths.
const LENGTHS: usize = 2 + 4;

/// What a header usually takes, and what is reserved for the few long ones.
const USUAL: usize = 40;
const ROOM: usize = 128;

/// A request's head in one allocation, from which the head can be made again.
///
/// Values that are marked [sensitive](HeaderValue::is_sensitive) are not copied: they stay the
/// shared values they are, and no second copy of a credential lies in memory.
///
/// ```
/// use http::Request;
/// use reattempt_http::KeptHead;
///
/// let (head, ()) = Request::get("http://one.example/").header("accept", "*/*").body(())?.into_parts();
/// let again = KeptHead::new(&head).to_parts();
/// assert_eq!((again.uri, again.headers), (head.uri, head.headers));
/// # Ok::<(), http::Error>(())
/// ```
pub struct KeptHead {
    method: Method,
    uri: Uri,
    version: Version,
    extensions: Extensions,
    /// For each header the length of its name in two bytes and of its value in four, the name and,
    /// unless it is shared, the value.
    headers: Vec<u8>,
    /// How many different names there are.
    names: usize,
    /// The values that are not in the buffer, in order.
    shared: Vec<HeaderValue>,
}

impl KeptHead {
    /// Keeps what `head` holds. The extensions are cloned.
    pub fn new(head: &Parts) -> Self {
        let (headers, shared) = flatten(&head.headers);
        Self {
            method: head.method.clone(),
            uri: head.uri.clone(),
            version: head.version,
            extensions: head.extensions.clone(),
            names: head.headers.keys_len(),
            headers,
            shared,
        }
    }

    /// The head again.
    pub fn to_parts(&self) -> Parts {
        let mut head = self.without_extensions();
        head.extensions = self.extensions.clone();
        head
    }

    /// The head again, for the last time.
    pub fn into_parts(self) -> Parts {
        let mut head = self.without_extensions();
        head.extensions = self.extensions;
        head
    }

    /// The request's target.
    pub fn uri(&self) -> &Uri {
        &self.uri
    }

    /// The bytes of the first header with this name, given in lower case, unless it is sensitive.
    pub fn header(&self, name: &str) -> Option<&[u8]> {
        self.entries().find(|entry| entry.name == name.as_bytes())?.value
    }

    fn without_extensions(&self) -> Parts {
        let (mut head, ()) = Request::new(()).into_parts();
        head.method = self.method.clone();
        head.uri = self.uri.clone();
        head.version = self.version;
        // Nothing here can be refused that the same kind of map held before.
        let _ = head.headers.try_reserve(self.names);
        let mut shared = self.shared.iter();
        for entry in self.entries() {
            let value = match entry.value {
                Some(value) => HeaderValue::from_bytes(value).ok(),
                None => shared.next().cloned(),
            };
            // What was a legal name and value when it was copied is one now.
            if let (Ok(name), Some(value)) = (HeaderName::from_bytes(entry.name), value) {
                let _ = head.headers.try_append(name, value);
            }
        }
        head
    }

    fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        let mut rest = &*self.headers;
        std::iter::from_fn(move || {
            let (name, after) = rest.split_first_chunk::<2>()?;
            let (value, after) = after.split_first_chunk::<4>()?;
            let (name, value) = (u16::from_le_bytes(*name), u32::from_le_bytes(*value));
            let (name, after) = after.split_at_checked(usize::from(name))?;
            if value == SHARED {
                rest = after;
                return Some(Entry { name, value: None });
            }
            let (value, after) = after.split_at_checked(usize::try_from(value).ok()?)?;
            rest = after;
            Some(Entry { name, value: Some(value) })
        })
    }
}

/// A header of the buffer; a value that is not in it is the next of the shared ones.
struct Entry<'a> {
    name: &'a [u8],
    value: Option<&'a [u8]>,
}

/// The headers in one buffer, and the values that are left out of it.
fn flatten(headers: &HeaderMap) -> (Vec<u8>, Vec<HeaderValue>) {
    let mut shared = Vec::new();
    if headers.is_empty() {
        return (Vec::new(), shared);
    }
    // Measuring first would cost more than what is reserved in vain.
    let mut buffer = Vec::with_capacity(headers.len() * USUAL + ROOM);
    for (name, value) in headers {
        let name = name.as_str().as_bytes();
        // The http crate allows no longer name.
        let name_length = u16::try_from(name.len()).unwrap_or(u16::MAX).to_le_bytes();
        let in_buffer = length_in_buffer(value);
        let value_length = in_buffer.unwrap_or(SHARED).to_le_bytes();
        let ([a, b], [c, d, e, f]) = (name_length, value_length);
        let bytes = value.as_bytes();
        buffer.reserve(LENGTHS + name.len() + bytes.len());
        buffer.extend_from_slice(&[a, b, c, d, e, f]);
        buffer.extend_from_slice(name);
        if in_buffer.is_some() {
            buffer.extend_from_slice(bytes);
        } else {
            shared.push(value.clone());
        }
    }
    (buffer, shared)
}

/// The length of a value that goes into the buffer.
#[inline]
fn length_in_buffer(value: &HeaderValue) -> Option<u32> {
    let fits = u32::try_from(value.len()).ok().filter(|length| *length < SHARED);
    fits.filter(|_| !value.is_sensitive())
}

impl fmt::Debug for KeptHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeptHead")
            .field("method", &self.method)
            .field("uri", &self.uri)
            .field("headers", &self.names)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Parts {
        let request = Request::put("https://user@one.example:8443/a?b=c")
            .version(Version::HTTP_2)
            .header("accept", "*/*")
            .header("x-many", "one")
            .header("x-other", "")
            .header("x-many", "two")
            .header("x-binary", HeaderValue::from_bytes(b"\xff\x80 \t~").unwrap())
            .extension(7_u32);
        request.body(()).unwrap().into_parts().0
    }

    fn assert_same(left: &Parts, right: &Parts) {
        assert_eq!(left.method, right.method);
        assert_eq!(left.uri, right.uri);
        assert_eq!(left.version, right.version);
        assert_eq!(left.headers, right.headers);
        assert_eq!(left.extensions.get::<u32>(), right.extensions.get::<u32>());
        let order = |head: &Parts| -> Vec<_> {
            head.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect()
        };
        assert_eq!(order(left), order(right));
    }

    #[test]
    fn the_head_comes_back_as_it_was_each_time() {
        let head = head();
        let kept = KeptHead::new(&head);
        assert_same(&kept.to_parts(), &head);
        assert_same(&kept.to_parts(), &head);
        assert_same(&kept.into_parts(), &head);
    }

    #[test]
    fn a_head_without_headers_needs_no_buffer() {
        let head = Request::get("/").body(()).unwrap().into_parts().0;
        let kept = KeptHead::new(&head);
        assert!(kept.headers.is_empty());
        assert_same(&kept.into_parts(), &head);
    }

    #[test]
    fn a_sensitive_value_is_shared_in_its_place_and_not_copied() {
        let mut head = head();
        let mut secret = HeaderValue::from_static("the secret");
        secret.set_sensitive(true);
        head.headers.insert("authorization", secret.clone());
        head.headers.append("x-many", secret);
        let kept = KeptHead::new(&head);
        let copied = kept.headers.windows(10).any(|bytes| bytes == b"the secret");
        assert!(!copied);
        let again = kept.to_parts();
        assert_same(&again, &head);
        assert!(again.headers["authorization"].is_sensitive());
        assert_eq!(kept.header("authorization"), None);
    }

    #[test]
    fn a_header_is_found_by_its_name() {
        let kept = KeptHead::new(&head());
        assert_eq!(kept.header("x-many"), Some(&b"one"[..]));
        assert_eq!(kept.header("x-other"), Some(&b""[..]));
        assert_eq!(kept.header("x-missing"), None);
    }

    #[test]
    fn the_longest_name_comes_back() {
        let name = HeaderName::from_bytes(&[b'n'; u16::MAX as usize]).unwrap();
        let mut head = head();
        head.headers.insert(name, HeaderValue::from_static("v"));
        assert_same(&KeptHead::new(&head).into_parts(), &head);
    }
}
