//! A view of a request of any type, for classifiers and for rules that choose options.

use std::fmt;

use http::{HeaderMap, HeaderName, HeaderValue, Request};
use reattempt_replay::SavedHead;

/// A view of the head of a request that is about to be sent, or of a saved request. Nothing is copied for it.
///
/// ```
/// use http::Request;
/// use reattempt::classify::RequestView;
///
/// let request = Request::get("http://one.example/search?q=rust").header("x-tenant", "a").body(())?;
/// let view = RequestView::from(&request);
/// assert_eq!((view.method(), view.path(), view.query()), ("GET", "/search", Some("q=rust")));
/// assert_eq!(view.authority(), Some("one.example"));
/// assert_eq!(view.header("X-Tenant"), Some(&b"a"[..]));
/// # Ok::<(), http::Error>(())
/// ```
#[derive(Clone, Copy)]
pub struct RequestView<'a>(&'a (dyn Head + 'a));

impl<'a> RequestView<'a> {
    /// Returns the method, such as `GET`.
    pub fn method(&self) -> &'a str {
        self.0.method()
    }

    /// Returns the scheme of the target, if it has one.
    pub fn scheme(&self) -> Option<&'a str> {
        self.0.scheme()
    }

    /// Returns the authority of the target, if it has one: the host, with user information and port if there are any.
    pub fn authority(&self) -> Option<&'a str> {
        self.0.authority()
    }

    /// Returns the path of the target.
    pub fn path(&self) -> &'a str {
        self.0.target().0
    }

    /// Returns the query of the target, if it has one.
    pub fn query(&self) -> Option<&'a str> {
        self.0.target().1
    }

    /// Returns the first value of the header with this name, if there is one.
    pub fn header(&self, name: impl AsRef<str>) -> Option<&'a [u8]> {
        self.0.header(&HeaderName::from_bytes(name.as_ref().as_bytes()).ok()?)
    }
}

/// Without the query, the user and the values of the headers, which may contain credentials.
impl fmt::Debug for RequestView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestView")
            .field("method", &self.method())
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

impl<'a, B> From<&'a Request<B>> for RequestView<'a> {
    fn from(request: &'a Request<B>) -> Self {
        Self(request)
    }
}

#[cfg(feature = "reqwest")]
impl<'a> From<&'a reqwest::Request> for RequestView<'a> {
    fn from(request: &'a reqwest::Request) -> Self {
        Self(request)
    }
}

impl<'a> RequestView<'a> {
    /// Returns a view of a saved head, if it is there.
    pub(crate) fn of_saved(head: &'a SavedHead) -> Option<Self> {
        head.is_restorable().then_some(Self(head))
    }
}

/// The parts of a head, by reference.
trait Head {
    fn method(&self) -> &str;
    fn scheme(&self) -> Option<&str>;
    fn authority(&self) -> Option<&str>;
    /// Returns the path and the query.
    fn target(&self) -> (&str, Option<&str>);
    fn header(&self, name: &HeaderName) -> Option<&[u8]>;
}

fn first<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a [u8]> {
    headers.get(name).map(HeaderValue::as_bytes)
}

impl<B> Head for Request<B> {
    fn method(&self) -> &str {
        self.method().as_str()
    }

    fn scheme(&self) -> Option<&str> {
        self.uri().scheme_str()
    }

    fn authority(&self) -> Option<&str> {
        self.uri().authority().map(|authority| authority.as_str())
    }

    fn target(&self) -> (&str, Option<&str>) {
        (self.uri().path(), self.uri().query())
    }

    fn header(&self, name: &HeaderName) -> Option<&[u8]> {
        first(self.headers(), name)
    }
}

impl Head for SavedHead {
    fn method(&self) -> &str {
        self.method_name().unwrap_or_default()
    }

    fn scheme(&self) -> Option<&str> {
        self.scheme()
    }

    fn authority(&self) -> Option<&str> {
        self.authority()
    }

    fn target(&self) -> (&str, Option<&str>) {
        let target = self.path_and_query().unwrap_or_default();
        match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        }
    }

    fn header(&self, name: &HeaderName) -> Option<&[u8]> {
        self.values(name).next()
    }
}

#[cfg(feature = "reqwest")]
impl Head for reqwest::Request {
    fn method(&self) -> &str {
        self.method().as_str()
    }

    fn scheme(&self) -> Option<&str> {
        Some(self.url().scheme())
    }

    fn authority(&self) -> Option<&str> {
        Some(self.url().authority()).filter(|authority| !authority.is_empty())
    }

    fn target(&self) -> (&str, Option<&str>) {
        (self.url().path(), self.url().query())
    }

    fn header(&self, name: &HeaderName) -> Option<&[u8]> {
        first(self.headers(), name)
    }
}
