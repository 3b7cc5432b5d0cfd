//! The server that a route applies to.

/// A host, with its scheme and port if specified.
#[derive(Debug, Clone)]
pub(super) struct Destination {
    scheme: Option<String>,
    /// In lower case, without a final dot.
    pub(super) host: String,
    port: Option<u16>,
}

/// Returns the port that a scheme implies.
fn usual_port(scheme: Option<&str>) -> Option<u16> {
    match scheme {
        Some(scheme) if scheme.eq_ignore_ascii_case("http") => Some(80),
        Some(scheme) if scheme.eq_ignore_ascii_case("https") => Some(443),
        _ => None,
    }
}

/// Splits an authority into its host, in brackets for an IPv6 address, and its port. Returns `None` for an invalid
/// port.
pub(super) fn split(authority: &str) -> Option<(&str, Option<u16>)> {
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    match address.rsplit_once(':') {
        // In an IPv6 address without a port, the last colon is inside the brackets.
        Some((host, port)) if !address.ends_with(']') => Some((host, Some(port.parse().ok()?))),
        _ => Some((address, None)),
    }
}

impl Destination {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (scheme, authority) = match text.split_once("://") {
            Some((scheme, authority)) => {
                (Some(scheme.to_ascii_lowercase()), authority.strip_suffix('/').unwrap_or(authority))
            }
            None => (None, text),
        };
        if !matches!(scheme.as_deref(), None | Some("http" | "https")) || authority.contains('@') {
            return None;
        }
        let (host, port) = split(authority)?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
        let is_legal = match bracketed {
            Some(address) => address.parse::<std::net::Ipv6Addr>().is_ok(),
            None => !host.is_empty() && host.bytes().all(is_name),
        };
        let host = host.strip_suffix('.').unwrap_or(host).to_ascii_lowercase();
        let port = port.or_else(|| usual_port(scheme.as_deref()));
        is_legal.then_some(Self { scheme, host, port })
    }

    /// Returns `true` if a URI refers to this server. A request without an authority matches no server.
    pub(super) fn matches(&self, scheme: Option<&str>, authority: Option<&str>) -> bool {
        let Some((host, port)) = authority.and_then(split) else { return false };
        let own_scheme =
            self.scheme.as_deref().is_none_or(|own| scheme.is_some_and(|its| own.eq_ignore_ascii_case(its)));
        let own_port = self.port.is_none_or(|own| port.or_else(|| usual_port(scheme)) == Some(own));
        own_scheme && own_port && host.strip_suffix('.').unwrap_or(host).eq_ignore_ascii_case(&self.host)
    }
}
