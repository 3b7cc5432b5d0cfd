//! Errors of a connection that was not established.
//!
//! Nothing was sent, so another attempt is safe, and most of them may succeed. The error types of connectors, proxies
//! and resolvers are often private or unknown. So the final errors are listed here, and every other one is "no
//! connection".

use std::error::Error;
use std::io::ErrorKind;

use http::uri::{InvalidUri, InvalidUriParts};

use super::texts::Letters;
use super::{source, tls};

/// Texts of errors that every attempt meets, from the sources of the libraries.
const FINAL: &[&str] = &[
    // A URI or scheme that the connector does not accept: hyper-util, hyper-rustls, hyper-tls, hyper-boring, reqwest,
    // tonic, hyper-http-proxy, tokio-socks.
    "invalid url",
    "unsupported scheme",
    "missing scheme",
    "proxy scheme expected",
    "https required but uri was not https",
    "connecting to https without tls enabled",
    "missing host",
    "missing destination host",
    "missing destination port",
    "no host in url",
    "destination has no host",
    "invalid dns name",
    "invalid server name",
    "target address is invalid",
    "host address is more than 255 characters",
    "ipv6 is not supported",
    // A proxy that requires credentials: hyper-util, older versions of reqwest, tokio-socks, async-socks5.
    "authorization required",
    "proxy authentication required",
    "http/1.1 407",
    "http/1.0 407",
    "does not support user/pass authentication",
    "implements authentication incorrectly",
    "credentials not accepted",
    "did not recognise client identifier",
    "no acceptable auth methods",
    "no acceptable methods",
    "password auth failure",
    "report different user-ids",
    // A proxy that forbids the target: the same, and hyper-proxy, which shows the start of the response.
    "connection not allowed",
    "403 forbidden",
    "http/1.1 403",
    "http/1.0 403",
];

/// Returns `true` if every attempt to connect fails like this: a certificate or protocol was refused, the connector
/// does not accept the URI, or the proxy requires credentials or forbids the target.
pub(super) fn is_final(error: &(dyn Error + 'static)) -> bool {
    // The text of a resolver may contain any name, and a name that was not found may be found later.
    std::iter::successors(Some(error), |&error| source(error))
        .map(|error| (error, error.to_string()))
        .take_while(|(_, text)| !is_resolver(text))
        .any(|(error, text)| is_final_type(error) || is_final_text(&Letters::of(&text)))
}

fn is_final_text(text: &Letters) -> bool {
    text.contains_any(FINAL) || tls::is_refused(text)
}

fn is_final_type(error: &(dyn Error + 'static)) -> bool {
    let kind = error.downcast_ref().map(std::io::Error::kind);
    matches!(kind, Some(ErrorKind::InvalidInput | ErrorKind::PermissionDenied | ErrorKind::Unsupported))
        || error.is::<InvalidUri>()
        || error.is::<InvalidUriParts>()
}

/// Returns `true` if a resolver or proxy failed. The error types are private in hyper-util, which reqwest and tonic
/// use, too.
pub(super) fn is_on_the_way(error: &(dyn Error + 'static)) -> bool {
    // hyper-util's `Tunnel`, its `SocksV4` and `SocksV5`, reqwest's SOCKS, and hyper-http-proxy.
    const PROXY: [&str; 4] =
        ["tunnel error: ", "SOCKS error: ", "error connecting to socks proxy", "unsuccessful tunnel"];
    let text = error.to_string();
    is_resolver(&text) || PROXY.iter().any(|start| text.starts_with(start))
}

/// Returns `true` if this is the text of a name that was not resolved.
fn is_resolver(text: &str) -> bool {
    // hyper-util, and reqwest for the target behind a SOCKS proxy.
    matches!(text, "dns error" | "error resolving for socks proxy")
}
