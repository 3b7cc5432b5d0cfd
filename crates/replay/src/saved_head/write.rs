//! Writing a head into its buffer, a cost paid by every call.

use http::{HeaderMap, HeaderValue, Method, Uri};

use super::buffer::Buffer;
use super::pairs::{LENGTHS, put, put_alone, put_joined};
use super::{SEPARATOR, SharedValues};

/// The assumed size of a header, and extra room for the target and long headers.
const USUAL: usize = 40;
const ROOM: usize = 192;

/// The head as pairs, and the sensitive values, which are not in the pairs.
type Written = (Vec<u8>, Option<Box<SharedValues>>);

/// Writes a head. The buffer is empty if the head cannot be restored.
pub(super) fn write(method: &Method, uri: &Uri, headers: &HeaderMap) -> Written {
    let zeros = Buffer::zeros(|| headers.len() * USUAL + ROOM);
    // Measuring every head would cost more than writing a few of them twice.
    write_to(zeros, method, uri, headers).unwrap_or_else(|| write_measured(method, uri, headers))
}

/// Writes a head that is longer than usual.
#[cold]
fn write_measured(method: &Method, uri: &Uri, headers: &HeaderMap) -> Written {
    let length = measure(method, uri, headers);
    // In a head below 4 GiB, every length fits in its half of a word.
    let zeros = if length as u64 > u64::from(u32::MAX) { Vec::new() } else { vec![0; length] };
    write_to(zeros, method, uri, headers).unwrap_or_default()
}

/// Writes the head to the front of a buffer and truncates the rest. Returns `None` if the head does not fit.
#[inline(always)]
fn write_to(mut pairs: Vec<u8>, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<Written> {
    let target = Target::of(uri);
    // `Uri::from_parts` accepts a scheme only together with the two other parts.
    let has_both = !target.authority.is_empty() && !target.path.is_empty();
    if uri.scheme_str().is_some() != has_both {
        return Some(Written::default());
    }
    let mut shared = None;
    let free = put(&mut pairs, method.as_str().as_bytes(), target.path)?;
    let free = put_joined(free, target.scheme, target.authority)?;
    let free = put_headers(free, headers, &mut shared)?;
    pairs.truncate(pairs.len() - free);
    Some((pairs, shared))
}

/// The parts of a target. A missing part is empty.
struct Target<'a> {
    /// The scheme and its separator. Both are in the first part if the scheme is `http` or `https`.
    scheme: [&'a [u8]; 2],
    authority: &'a [u8],
    path: &'a [u8],
}

impl<'a> Target<'a> {
    #[inline]
    fn of(uri: &'a Uri) -> Self {
        let scheme: [&[u8]; 2] = match uri.scheme_str() {
            None => [b"", b""],
            Some("http") => [b"http://", b""],
            Some("https") => [b"https://", b""],
            Some(other) => [other.as_bytes(), SEPARATOR],
        };
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let path = match uri.path_and_query() {
            // The path of a target without any part is empty, although its `PathAndQuery` is "/".
            Some(path) if path.as_str() != "/" || !uri.path().is_empty() => path.as_str(),
            _ => "",
        };
        Self { scheme, authority: authority.as_bytes(), path: path.as_bytes() }
    }
}

/// Writes the headers to the front of a buffer. Returns the length of the rest, or `None` if they do not fit.
#[inline(never)]
fn put_headers(mut free: &mut [u8], headers: &HeaderMap, shared: &mut Option<Box<SharedValues>>) -> Option<usize> {
    for (name, value) in headers {
        let name = name.as_str().as_bytes();
        if value.is_sensitive() {
            free = put_alone(free, name)?;
            share(shared, value.clone());
        } else {
            free = put(free, name, value.as_bytes())?;
        }
    }
    Some(free.len())
}

/// Returns a length that is large enough for the head.
fn measure(method: &Method, uri: &Uri, headers: &HeaderMap) -> usize {
    let target = Target::of(uri);
    let line = [method.as_str().as_bytes(), target.scheme[0], target.scheme[1]];
    let line = line.iter().chain([&target.authority, &target.path]);
    let line = line.map(|part| part.len()).sum::<usize>() + 2 * LENGTHS;
    headers.iter().fold(line, |sum, (name, value)| sum + LENGTHS + name.as_str().len() + value.len())
}

/// Adds a value that is not in the buffer.
#[cold]
fn share(shared: &mut Option<Box<SharedValues>>, value: HeaderValue) {
    match shared {
        Some(shared) => shared.others.push(value),
        None => *shared = Some(Box::new(SharedValues { first: value, others: Vec::new() })),
    }
}
