//! The default destination of a request: the key by which budgets and guards keep servers apart.

use std::borrow::Cow;

use http::header::HOST;
use http::uri::Authority;
use reattempt_control::bounded_name;

use crate::call::request_view::RequestView;

/// Returns the destination under which state is kept, or the hash of a long one.
#[inline]
pub(super) fn bounded(destination: Cow<'_, str>) -> Cow<'_, str> {
    if let Cow::Owned(hash) = bounded_name(&destination) {
        return hash.into();
    }
    destination
}

/// Returns the default destination: the authority of the target, or else the `Host` field if `by_host` is set. It
/// begins with the scheme unless that is http, because https may be another server.
#[inline]
pub(super) fn default_destination(request: RequestView<'_>, by_host: bool) -> Cow<'_, str> {
    match request.scheme_and_authority() {
        (scheme @ (None | Some("" | "http")), Some(authority)) => normal(authority, scheme),
        (scheme, authority) => with_scheme(request, scheme, authority, by_host),
    }
}

#[inline(never)]
fn with_scheme<'a>(
    request: RequestView<'a>,
    scheme: Option<&str>,
    authority: Option<&'a str>,
    by_host: bool,
) -> Cow<'a, str> {
    match (scheme, authority) {
        (None, Some(authority)) => normal(authority, None),
        (Some(scheme), Some(authority)) => match (normal(authority, Some(scheme)), request.origin()) {
            (Cow::Borrowed(_), Some(origin)) => origin.into(),
            (normal, _) => format!("{scheme}://{normal}").into(),
        },
        (_, None) => {
            let host = by_host.then(|| request.value(&HOST)).flatten();
            match host.and_then(|host| Authority::try_from(host).ok()) {
                Some(authority) => normal(authority.as_str(), scheme).into_owned().into(),
                None => "".into(),
            }
        }
    }
}

/// Returns `true` if no byte is a colon, an `@`, a capital letter or beyond ASCII. Most authorities are a name in lower
/// case and nothing else. Eight bytes are compared at once.
#[inline]
fn is_plain(bytes: &[u8]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    // The high bit of a byte is set if it is one of those.
    let marks = |bytes: &[u8; 8]| {
        let word = u64::from_le_bytes(*bytes);
        let low = word & !HIGH;
        let from_at_sign = low + (0x80 - b'@' as u64) * EACH;
        let past_capitals = low + (0x7f - b'Z' as u64) * EACH;
        let not_colon = (low ^ (b':' as u64 * EACH)) + 0x7f * EACH;
        word | from_at_sign & !past_capitals | !not_colon
    };
    let (words, rest) = bytes.as_chunks::<8>();
    // The last word overlaps the one before.
    match bytes.last_chunk() {
        Some(last) => words.iter().fold(marks(last), |all, word| all | marks(word)) & HIGH == 0,
        None => !rest.iter().any(|byte| matches!(byte, b':' | b'@'..=b'Z' | 0x80..)),
    }
}

/// Returns the host in lower case, with the port unless it is the scheme's own, without user, password and the dot of
/// an absolute name. Borrowed if the authority has that form already.
#[inline]
fn normal<'a>(authority: &'a str, scheme: Option<&str>) -> Cow<'a, str> {
    match is_plain(authority.as_bytes()) && !authority.ends_with('.') {
        true => authority.into(),
        false => normalized(authority, scheme),
    }
}

#[inline(never)]
fn normalized<'a>(authority: &'a str, scheme: Option<&str>) -> Cow<'a, str> {
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    let (host, port) = match address.rsplit_once(':') {
        // The last colon of an IPv6 address without a port is within its brackets.
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
