//! The default destination of a request, which is the key for its server in budgets and guards.

use std::borrow::Cow;

use http::header::HOST;
use http::uri::Authority;

use crate::call::request_view::RequestView;

/// Returns the default destination: the URI's authority, or the `Host` header if `by_host` is set. An `https`
/// destination begins with the scheme, because it may be a different server than the `http` one.
#[inline(always)]
pub(super) fn default_destination(request: RequestView<'_>, by_host: bool) -> Cow<'_, str> {
    match request.scheme_and_authority() {
        (scheme @ (None | Some("" | "http")), Some(authority)) => normal(authority, scheme),
        (Some(scheme), Some(authority)) => with_scheme(request, scheme, authority),
        (scheme, None) => of_host(request.value(&HOST).filter(|_| by_host), scheme),
    }
}

#[inline(never)]
fn with_scheme<'a>(request: RequestView<'a>, scheme: &str, authority: &'a str) -> Cow<'a, str> {
    match (normal(authority, Some(scheme)), request.origin()) {
        (Cow::Borrowed(_), Some(origin)) => origin.into(),
        (normal, _) => format!("{scheme}://{normal}").into(),
    }
}

#[inline(never)]
fn of_host<'a>(host: Option<&[u8]>, scheme: Option<&str>) -> Cow<'a, str> {
    let host = host.and_then(|host| Authority::try_from(host).ok());
    host.map(|host| normalized(host.as_str(), scheme).into_owned()).unwrap_or_default().into()
}

/// Returns `true` if all bytes are ASCII, without a colon, an `@` or a capital letter. Most authorities are such plain
/// names. The function checks eight bytes at once.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    // In the result, the high bit of a byte is set if the byte is a colon, an `@`, a capital letter or not ASCII.
    let marks = |bytes: &[u8; 8]| {
        let word = u64::from_le_bytes(*bytes);
        let low = word & !HIGH;
        let from_at_sign = low + (0x80 - b'@' as u64) * EACH;
        let past_capitals = low + (0x7f - b'Z' as u64) * EACH;
        let not_colon = (low ^ (b':' as u64 * EACH)) + 0x7f * EACH;
        word | from_at_sign & !past_capitals | !not_colon
    };
    let (words, rest) = bytes.as_chunks::<8>();
    // The last word overlaps the one before it.
    match bytes.last_chunk() {
        Some(last) => words.iter().fold(marks(last), |all, word| all | marks(word)) & HIGH == 0,
        None => !rest.iter().any(|byte| matches!(byte, b':' | b'@'..=b'Z' | 0x80..)),
    }
}

/// Returns the host in lower case, with the port unless it is the scheme's default. The userinfo and the final dot of
/// an absolute name are removed. The result is borrowed if the authority already has this form.
#[inline]
fn normal<'a>(authority: &'a str, scheme: Option<&str>) -> Cow<'a, str> {
    match is_plain(authority.as_bytes()) && !authority.ends_with('.') {
        true => authority.into(),
        false => normalized(authority, scheme),
    }
}

#[inline(never)]
pub(super) fn normalized<'a>(authority: &'a str, scheme: Option<&str>) -> Cow<'a, str> {
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let (host, port) = match address.rsplit_once(':') {
        // In an IPv6 address without a port, the last colon is inside the brackets.
        Some((host, port)) if !address.ends_with(']') => (host, Some(port)),
        _ => (address, None),
    };
    let own = match scheme {
        Some("http") => Some(80),
        Some("https") => Some(443),
        _ => None,
    };
    let number = port.and_then(|port| port.parse::<u16>().ok()).filter(|port| Some(*port) != own);
    let plain_port = port.is_none_or(|port| number.is_some() && !port.starts_with(['0', '+']));
    let is_plain = |host: &str| !host.ends_with('.') && !host.bytes().any(|b| b.is_ascii_uppercase());
    if plain_port && address == authority && is_plain(host) {
        return authority.into();
    }
    let mut normal = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
    if let Some(port) = number {
        normal.push(':');
        normal.push_str(&port.to_string());
    }
    normal.into()
}
