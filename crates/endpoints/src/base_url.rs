//! Base URLs: the part of a URL that differs between endpoints.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use http::Uri;
use http::uri::{Authority, Scheme};

use super::EndpointsError;

/// The base URL of an endpoint: scheme, host, port and an optional path prefix.
#[derive(Clone, PartialEq, Eq)]
pub struct BaseUrl {
    pub(super) scheme: Scheme,
    pub(super) authority: Authority,
    /// Empty, or a path that starts with a slash and does not end with one.
    pub(super) prefix: Box<str>,
}

impl BaseUrl {
    /// Parses a base URL, such as `https://eu.example/api`.
    pub(super) fn read(text: &str) -> Result<Self, EndpointsError> {
        let error = |problem| EndpointsError::new(text, problem);
        if text.contains(['?', '#']) {
            return Err(error("has a query or a fragment (a base URL ends with its path)"));
        }
        let uri: Uri = text.parse().map_err(|_| error("is no URL (`https://host/prefix`)"))?;
        let parts = uri.into_parts();
        let (Some(scheme), Some(authority)) = (parts.scheme, parts.authority) else {
            return Err(error("has no scheme or no host (`https://host/prefix`)"));
        };
        let own_port = match scheme.as_str() {
            "http" => 80,
            "https" => 443,
            _ => return Err(error("has another scheme (http or https)")),
        };
        if authority.as_str().contains('@') {
            return Err(error("has a user name or a password (set an `Authorization` header)"));
        }
        if authority.host().is_empty() {
            return Err(error("has no host (`https://host/prefix`)"));
        }
        let port = match authority.as_str().strip_prefix(authority.host()) {
            Some("") => None,
            _ => Some(
                authority.port_u16().filter(|port| *port > 0).ok_or_else(|| error("has no valid port (1 to 65535)"))?,
            ),
        };
        let host = authority.host().to_ascii_lowercase();
        let normal = match port.filter(|port| *port != own_port) {
            Some(port) => format!("{host}:{port}"),
            None => host,
        };
        let authority: Authority = normal.parse().map_err(|_| error("has no valid host"))?;
        // The first clone allocates, so it is done here and not during an attempt.
        drop(authority.clone());
        let path = parts.path_and_query.as_ref().map_or("", |path| path.path());
        if has_dots(path) {
            return Err(error("has `.` or `..` in its path (a path without them)"));
        }
        Ok(Self { scheme, authority, prefix: path.trim_end_matches('/').into() })
    }

    /// Parses base URLs of equivalent servers.
    pub(super) fn read_all(texts: impl BaseUrls) -> Result<Vec<Self>, EndpointsError> {
        let (mut all, mut seen) = (Vec::<Self>::new(), HashSet::new());
        for text in texts.texts() {
            let text = text.as_ref();
            let one = Self::read(text)?;
            if !seen.insert(one.to_string()) {
                return Err(EndpointsError::twice(text));
            }
            if all.first().is_some_and(|first| first.scheme != one.scheme) {
                let problem = "has another scheme than the first (one scheme for all)";
                return Err(EndpointsError::new(text, problem));
            }
            all.push(one);
        }
        if all.is_empty() { Err(EndpointsError::empty()) } else { Ok(all) }
    }

    /// Returns the endpoint's name: the normalised URL.
    pub(super) fn name(&self) -> Arc<str> {
        self.to_string().into()
    }

    /// Returns the length of this base's prefix in the path, or `None` if the request has a different base.
    ///
    /// A request without a host has no base, so its whole path is below it.
    pub(super) fn prefix_in(&self, scheme: Option<&str>, authority: Option<&str>, path: &str) -> Option<usize> {
        let Some(authority) = authority else { return scheme.is_none().then_some(0) };
        if scheme != Some(self.scheme.as_str()) || !self.is_authority(authority) {
            return None;
        }
        let rest = path.strip_prefix(&*self.prefix)?;
        (rest.is_empty() || rest.starts_with('/') || self.prefix.is_empty()).then_some(self.prefix.len())
    }

    #[inline]
    fn is_authority(&self, authority: &str) -> bool {
        authority == self.authority.as_str() || self.is_same_authority(authority)
    }

    fn is_same_authority(&self, authority: &str) -> bool {
        if authority.eq_ignore_ascii_case(self.authority.as_str()) {
            return true;
        }
        let own_port = if self.scheme == Scheme::HTTP { ":80" } else { ":443" };
        let host = authority.strip_suffix(own_port);
        host.is_some_and(|host| host.eq_ignore_ascii_case(self.authority.as_str()))
    }
}

/// Returns `true` if a path has a segment `.` or `..`. Dots and slashes may be percent-encoded, and for the parser of
/// reqwest's URLs, a backslash is a slash.
pub(super) fn has_dots(path: &str) -> bool {
    if !path.contains("/.") && !path.contains(['%', '\\']) {
        return false;
    }
    let decoded = path.replace("%2e", ".").replace("%2E", ".").replace("%2f", "/").replace("%2F", "/");
    let decoded = decoded.replace("%5c", "/").replace("%5C", "/");
    decoded.split(['/', '\\']).any(|segment| segment == "." || segment == "..")
}

impl fmt::Display for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}://{}{}", self.scheme, self.authority, self.prefix)
    }
}

impl fmt::Debug for BaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}
/// Several base URLs: an array, a `Vec` or any other iterator of texts. This trait is implemented for each of them.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no list of base URLs",
    note = "pass each server's URL: `[\"http://one.internal\", \"http://two.internal\"]`, or a `Vec`",
    note = "one text is split: `text.split(',')`"
)]
pub trait BaseUrls {
    /// Returns the texts of the URLs.
    fn texts(self) -> impl Iterator<Item = impl AsRef<str>>;
}

#[diagnostic::do_not_recommend]
impl<I: IntoIterator<Item: AsRef<str>>> BaseUrls for I {
    fn texts(self) -> impl Iterator<Item = impl AsRef<str>> {
        self.into_iter()
    }
}
