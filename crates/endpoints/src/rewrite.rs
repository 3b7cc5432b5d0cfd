//! The replacement of a request's base URL with that of an endpoint.

use http::uri::PathAndQuery;
use http::{Request, Uri};

use super::EndpointsError;
use super::base_url::BaseUrl;

/// A request whose base URL can be replaced. This trait is sealed.
#[diagnostic::on_unimplemented(
    message = "the URL of `{Self}` cannot be replaced by that of an endpoint",
    note = "`EndpointsLayer` takes `http::Request<B>`, and `reqwest::Request` with the feature `reqwest`"
)]
pub trait Rewrite {
    /// Returns `true` if the request has this base URL.
    #[doc(hidden)]
    fn is_for(&self, base: &BaseUrl) -> bool;

    /// Replaces the request's base URL.
    #[doc(hidden)]
    fn rewrite(&mut self, from: &BaseUrl, to: &BaseUrl) -> Result<(), EndpointsError>;
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

impl<B> Rewrite for Request<B> {
    #[inline]
    fn is_for(&self, base: &BaseUrl) -> bool {
        let uri = self.uri();
        let authority = uri.authority().map(|authority| authority.as_str());
        // CONNECT targets and `*` have no path.
        uri.path().starts_with('/') && base.rest(uri.scheme_str(), authority, uri.path()).is_some()
    }

    #[inline]
    fn rewrite(&mut self, from: &BaseUrl, to: &BaseUrl) -> Result<(), EndpointsError> {
        let uri = self.uri();
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(to.scheme.clone());
        parts.authority = Some(to.authority.clone());
        let has_base = uri.authority().is_some();
        let same_path = if has_base { from.prefix == to.prefix } else { to.prefix.is_empty() };
        parts.path_and_query = if same_path {
            uri.path_and_query().cloned()
        } else {
            let rest = if has_base { uri.path().get(from.prefix.len()..) } else { Some(uri.path()) };
            let path = joined(&to.prefix, rest.unwrap_or_default(), uri.query());
            Some(PathAndQuery::try_from(path).map_err(|_| too_long(to))?)
        };
        *self.uri_mut() = Uri::from_parts(parts).map_err(|_| too_long(to))?;
        Ok(())
    }
}

#[cfg(feature = "reqwest")]
impl Rewrite for reqwest::Request {
    fn is_for(&self, base: &BaseUrl) -> bool {
        let url = self.url();
        base.rest(Some(url.scheme()), Some(url.authority()), url.path()).is_some()
    }

    fn rewrite(&mut self, from: &BaseUrl, to: &BaseUrl) -> Result<(), EndpointsError> {
        let url = self.url();
        let rest = url.path().get(from.prefix.len()..).unwrap_or_default();
        let path = joined(&to.prefix, rest, url.query());
        let parsed = reqwest::Url::parse(&format!("{}://{}{path}", to.scheme, to.authority));
        let mut new = parsed.map_err(|_| too_long(to))?;
        new.set_fragment(url.fragment());
        *self.url_mut() = new;
        Ok(())
    }
}
