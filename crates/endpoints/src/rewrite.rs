//! The replacement of a request's base URL with that of an endpoint.

use http::uri::PathAndQuery;
use http::{Request, Uri};

use super::EndpointsError;
use super::base_url::{BaseUrl, has_dots};

/// A request whose base URL can be replaced. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "the URL of `{Self}` cannot be replaced by that of an endpoint",
    note = "`EndpointsLayer` takes `http::Request<B>`, and `reqwest::Request` of reqwest 0.13 with the feature `reqwest` of reattempt",
    note = "for reqwest 0.12, turn on the feature `reqwest-0-12` of reattempt and put `reattempt::reqwest_0_12::Client012` around the client"
)]
pub trait Rewrite {
    /// Returns the length of the base URL's prefix in the request's path, or `None` if the request has another base
    /// URL. A request without a host has no prefix.
    #[doc(hidden)]
    fn prefix_in(&self, base: &BaseUrl) -> Option<usize>;

    /// Returns the path. It does not start with a slash if the request has none.
    #[doc(hidden)]
    fn path(&self) -> &str;

    /// Returns the host and the port, for an error.
    #[doc(hidden)]
    fn authority(&self) -> &str;

    /// Replaces everything up to the end of the prefix with a base URL.
    #[doc(hidden)]
    fn rewrite(&mut self, prefix: usize, to: &BaseUrl) -> Result<(), EndpointsError>;
}

/// Returns the error for a URL that is too long, the only possible error because all parts are valid.
#[cold]
fn too_long(to: &BaseUrl) -> EndpointsError {
    EndpointsError::new(&to.name(), "has no room for the path of the request (65,534 bytes with its prefix)")
}

/// Joins a base's prefix with the rest of a path.
fn joined(prefix: &str, rest: &str, query: Option<&str>) -> String {
    let slash = if rest.starts_with('/') || !prefix.is_empty() { "" } else { "/" };
    let (mark, query) = query.map_or(("", ""), |query| ("?", query));
    [prefix, slash, rest, mark, query].concat()
}

/// Returns an error if the rest of a path leads out of a prefix. A server may decode slashes before it resolves the
/// segments.
fn stays_below(prefix: &str, rest: &str, to: &BaseUrl) -> Result<(), EndpointsError> {
    if (prefix.is_empty() && to.prefix.is_empty()) || !has_dots(rest) {
        return Ok(());
    }
    Err(EndpointsError::new(&to.name(), "is not left by a path with `.` or `..` (a path without them)"))
}

impl<B> Rewrite for Request<B> {
    #[inline]
    fn prefix_in(&self, base: &BaseUrl) -> Option<usize> {
        let uri = self.uri();
        let authority = uri.authority().map(|authority| authority.as_str());
        if !self.path().starts_with('/') {
            return None;
        }
        base.prefix_in(uri.scheme_str(), authority, uri.path())
    }

    /// CONNECT targets and `*` have no path.
    #[inline]
    fn path(&self) -> &str {
        self.uri().path()
    }

    fn authority(&self) -> &str {
        self.uri().authority().map_or("", |authority| authority.as_str())
    }

    #[inline]
    fn rewrite(&mut self, prefix: usize, to: &BaseUrl) -> Result<(), EndpointsError> {
        let uri = self.uri();
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(to.scheme.clone());
        parts.authority = Some(to.authority.clone());
        parts.path_and_query = match prefix == 0 && to.prefix.is_empty() {
            true => uri.path_and_query().cloned(),
            false => path_below(uri, prefix, to)?,
        };
        *self.uri_mut() = Uri::from_parts(parts).map_err(|_| too_long(to))?;
        Ok(())
    }
}

/// Returns the path of a request below an endpoint's prefix.
#[inline(never)]
fn path_below(uri: &Uri, prefix: usize, to: &BaseUrl) -> Result<Option<PathAndQuery>, EndpointsError> {
    let (from, rest) = uri.path().split_at_checked(prefix).unwrap_or_default();
    stays_below(from, rest, to)?;
    if *from == *to.prefix {
        return Ok(uri.path_and_query().cloned());
    }
    PathAndQuery::try_from(joined(&to.prefix, rest, uri.query())).map(Some).map_err(|_| too_long(to))
}

#[cfg(feature = "reqwest")]
impl Rewrite for reqwest::Request {
    fn prefix_in(&self, base: &BaseUrl) -> Option<usize> {
        let url = self.url();
        base.prefix_in(Some(url.scheme()), Some(url.authority()), url.path())
    }

    fn path(&self) -> &str {
        self.url().path()
    }

    fn authority(&self) -> &str {
        self.url().authority()
    }

    fn rewrite(&mut self, prefix: usize, to: &BaseUrl) -> Result<(), EndpointsError> {
        let url = self.url();
        let (from, rest) = url.path().split_at_checked(prefix).unwrap_or_default();
        stays_below(from, rest, to)?;
        let path = joined(&to.prefix, rest, url.query());
        let parsed = reqwest::Url::parse(&format!("{}://{}{path}", to.scheme, to.authority));
        let mut new = parsed.map_err(|_| too_long(to))?;
        new.set_fragment(url.fragment());
        *self.url_mut() = new;
        Ok(())
    }
}
