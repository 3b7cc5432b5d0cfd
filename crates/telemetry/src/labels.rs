//! The labels of calls and attempts, all from fixed lists or a bounded table.

use std::collections::HashSet;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use http::uri::Authority;
use http::{Extensions, Response, StatusCode, Version};
use reattempt_core::FailureKind;
use reattempt_engine::TimedOut;
use reattempt_engine::classify::RequestView;
use reattempt_engine::wall::{BodyVerdict, causes, is_refused_here, verdict_of_error};

/// The label for all other values.
pub(super) const OTHER: &str = "_OTHER";

/// The methods that RFC 9110, RFC 5789 and the QUERY draft define.
const METHODS: [&str; 10] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"];

/// Returns a method as a label.
pub(super) fn method_of(name: &str) -> &'static str {
    METHODS.into_iter().find(|method| *method == name).unwrap_or(OTHER)
}

/// A server as a label.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Server {
    pub(super) address: Arc<str>,
    /// The port; `None` if the request does not determine it.
    pub(super) port: Option<u16>,
}

/// The longest host name, in bytes (RFC 1035 §2.3.4).
const LONGEST: usize = 255;

/// The servers that have their own labels.
pub(super) struct Servers {
    known: Mutex<HashSet<Server>>,
    most: usize,
}

impl Servers {
    pub(super) fn new(most: usize) -> Self {
        Self { known: Mutex::default(), most }
    }

    /// Returns the label of a request's server. One with a name that is too long for a host has the label of all
    /// others.
    pub(super) fn label_of(&self, server: Option<&Server>) -> Server {
        let server = server.filter(|server| server.address.len() <= LONGEST).filter(|server| {
            let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            let room = known.len() < self.most;
            known.contains(*server) || (room && known.insert(Server::clone(server)))
        });
        server.cloned().unwrap_or_else(|| Server { address: OTHER.into(), port: None })
    }
}

/// Returns the host and port of a request's URI. The host is in lower case, without an IPv6 address's brackets. The
/// scheme determines the default port.
pub(super) fn server_of(request: RequestView<'_>) -> Option<Server> {
    let (scheme, authority) = request.scheme_and_authority();
    let authority = Authority::try_from(authority?).ok()?;
    let port = authority.port_u16().or_else(|| match scheme? {
        "https" => Some(443),
        "http" => Some(80),
        _ => None,
    });
    let host = authority.host();
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    Some(Server { address: host.to_ascii_lowercase().into(), port })
}

/// Returns the URL of a request without userinfo and query.
pub(super) fn url_of(request: RequestView<'_>) -> String {
    let (scheme, authority) = request.scheme_and_authority();
    let host = authority.map(|name| name.rsplit_once('@').map_or(name, |(_, host)| host));
    match (scheme, host) {
        (Some(scheme), Some(host)) => format!("{scheme}://{host}{}", request.path()),
        (_, host) => format!("{}{}", host.unwrap_or_default(), request.path()),
    }
}

/// Returns the `error.type` label of an error.
pub(super) fn error_type(error: &(dyn Error + 'static)) -> &'static str {
    if is_refused_here(error) {
        return "refused";
    }
    if causes(error).any(|error| error.is::<TimedOut>()) {
        return "timeout";
    }
    match verdict_of_error(error).failure().map(|failure| failure.kind()) {
        Some(FailureKind::Timeout) => "timeout",
        Some(FailureKind::Connect) => "connect",
        Some(FailureKind::Network) => "network",
        _ => OTHER,
    }
}

/// A response whose head can be read, from any client.
pub trait ResponseHead {
    #[doc(hidden)]
    fn head(&self) -> (StatusCode, Version);

    /// Returns the error type of a body that broke while it was read as part of the attempt.
    #[doc(hidden)]
    fn broke(&self) -> Option<&'static str>;
}

impl<B> ResponseHead for Response<B> {
    fn head(&self) -> (StatusCode, Version) {
        (self.status(), self.version())
    }

    fn broke(&self) -> Option<&'static str> {
        type_of_break(self.extensions())
    }
}

#[cfg(feature = "reqwest")]
impl ResponseHead for reqwest::Response {
    fn head(&self) -> (StatusCode, Version) {
        (self.status(), self.version())
    }

    fn broke(&self) -> Option<&'static str> {
        type_of_break(self.extensions())
    }
}

fn type_of_break(extensions: &Extensions) -> Option<&'static str> {
    let failure = BodyVerdict::of(extensions)?.failure()?;
    Some(if failure.kind() == FailureKind::Timeout { "timeout" } else { "network" })
}

/// Returns a version as a label.
pub(super) fn version_of(version: Version) -> Option<&'static str> {
    match version {
        Version::HTTP_09 => Some("0.9"),
        Version::HTTP_10 => Some("1.0"),
        Version::HTTP_11 => Some("1.1"),
        Version::HTTP_2 => Some("2"),
        Version::HTTP_3 => Some("3"),
        _ => None,
    }
}
