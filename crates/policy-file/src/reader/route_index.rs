//! The look-up of the first route that matches a request, for files with thousands of routes.
//!
//! A route is found by its host and its path's segments. Each route that is found so is then compared as a whole, so
//! the index only has to find all candidates.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use reattempt::classify::RequestView;

use super::Route;
use super::conditions::Path;

/// The depth of the tree of segments. A route with a longer path is a candidate of each request to its host.
const MOST_SEGMENTS: usize = 64;

/// The routes of a document, found by host and path.
#[derive(Debug)]
pub(crate) struct RouteIndex {
    routes: Vec<Route>,
    hosts: HashMap<String, Paths>,
    /// The routes without a destination.
    any_host: Paths,
}

/// Routes by path. The numbers in each list are in ascending order.
#[derive(Debug, Default)]
struct Paths {
    any_path: Vec<usize>,
    root: PathNode,
}

/// The routes whose paths begin with the same segments.
#[derive(Debug, Default)]
struct PathNode {
    /// The paths with this next segment.
    named: HashMap<String, PathNode>,
    /// The paths with any next segment.
    any: Option<Box<PathNode>>,
    /// The paths that end here.
    ends: Vec<usize>,
    /// The paths that go on with any rest after a text, by the length of the text.
    prefixes: BTreeMap<usize, HashMap<String, Vec<usize>>>,
}

/// The first route found so far.
struct Search<'a, F> {
    first: Option<usize>,
    matches: F,
    request: RequestView<'a>,
}

impl RouteIndex {
    pub(crate) fn new(routes: &[Route]) -> Self {
        let mut this = Self { routes: routes.to_vec(), hosts: HashMap::new(), any_host: Paths::default() };
        for (number, route) in routes.iter().enumerate() {
            let paths = match route.host() {
                Some(host) => this.hosts.entry(host.to_owned()).or_default(),
                None => &mut this.any_host,
            };
            paths.insert(number, route.path());
        }
        this
    }

    /// Returns the number of the first route that matches.
    pub(crate) fn find(&self, request: RequestView<'_>) -> Option<usize> {
        self.find_by(request, |number| self.routes[number].matches(request))
    }

    fn find_by(&self, request: RequestView<'_>, matches: impl FnMut(usize) -> bool) -> Option<usize> {
        let mut search = Search { first: None, matches, request };
        let of_host = request.authority().and_then(host_of).and_then(|host| self.hosts.get(&*host));
        of_host.into_iter().chain([&self.any_host]).for_each(|paths| search.visit(paths));
        search.first
    }
}

/// Returns the host of an authority, as a route has it.
fn host_of(authority: &str) -> Option<Cow<'_, str>> {
    let (host, _) = super::destination::split(authority)?;
    let host = host.strip_suffix('.').unwrap_or(host);
    let is_lower = !host.bytes().any(|byte| byte.is_ascii_uppercase());
    Some(if is_lower { host.into() } else { host.to_ascii_lowercase().into() })
}

impl Paths {
    fn insert(&mut self, number: usize, path: Option<&Path>) {
        match path {
            Some(Path::Segments(segments)) if segments.len() <= MOST_SEGMENTS => {
                self.root.at(segments).ends.push(number);
            }
            Some(Path::Prefix(segments, text)) if segments.len() <= MOST_SEGMENTS => {
                let of_length = self.root.at(segments).prefixes.entry(text.len()).or_default();
                of_length.entry(text.clone()).or_default().push(number);
            }
            _ => self.any_path.push(number),
        }
    }
}

impl PathNode {
    /// Returns the node below these segments.
    fn at(&mut self, segments: &[Option<String>]) -> &mut Self {
        segments.iter().fold(self, |node, segment| match segment {
            Some(name) => node.named.entry(name.clone()).or_default(),
            None => node.any.get_or_insert_default(),
        })
    }

    /// Returns the nodes below that a segment leads to.
    fn next(&self, segment: &str) -> impl Iterator<Item = &Self> {
        let any = self.any.as_deref().filter(|_| !segment.is_empty());
        self.named.get(segment).into_iter().chain(any)
    }
}

impl<F: FnMut(usize) -> bool> Search<'_, F> {
    fn visit(&mut self, paths: &Paths) {
        self.compare(&paths.any_path);
        if let Some(rest) = self.request.path().strip_prefix('/') {
            self.descend(&paths.root, rest);
        }
    }

    fn descend(&mut self, node: &PathNode, rest: &str) {
        for (length, by_text) in &node.prefixes {
            if let Some(found) = rest.get(..*length).and_then(|text| by_text.get(text)) {
                self.compare(found);
            }
        }
        match rest.split_once('/') {
            Some((segment, rest)) => node.next(segment).for_each(|next| self.descend(next, rest)),
            None => node.next(rest).for_each(|next| self.compare(&next.ends)),
        }
    }

    /// Compares these routes with the request, up to the first one found so far.
    fn compare(&mut self, numbers: &[usize]) {
        let earlier = numbers.iter().copied().take_while(|number| self.first.is_none_or(|first| *number < first));
        let found = earlier.into_iter().find(|number| (self.matches)(*number));
        self.first = found.or(self.first);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use std::fmt::Write as _;

    use http::Request;

    use super::*;
    use crate::reader::{Document, Format};

    fn routes(routes: impl IntoIterator<Item = String>) -> Vec<Route> {
        let mut text = "default = \"a\"\n[a]\n".to_owned();
        for route in routes {
            let _ = writeln!(text, "[[routes]]\npolicy = \"a\"\n{route}");
        }
        Document::read(&text, Format::Toml).unwrap().routes
    }

    fn request(method: &str, uri: &str) -> Request<()> {
        Request::builder().method(method).uri(uri).body(()).unwrap()
    }

    /// The index finds the same route as a comparison with each route in order.
    #[test]
    fn index_finds_the_first_route() {
        let hosts = ["", "one", "One.:80", "https://one", "http://two:8080", "two", "[::1]"];
        let paths = ["", "/", "/a", "/a/", "/a/b", "/{x}", "/{x}/b", "/a/{y}", "/*", "/a/*", "/a/b*", "/{x}/*", "/é*"];
        let methods = ["", "\"GET\"", "[\"PUT\", \"POST\"]"];
        let authorities = ["", "http://one", "http://ONE.:80", "https://one:443", "http://two:8080", "http://[::1]"];
        let targets = ["/", "/a", "/a/", "/a/b", "/a/bc/d", "/c", "/c/b", "//b", "/%C3%A9", "/a/b/c", "/c/b?x=/a"];
        let mut state = 7_u32;
        let mut random = |below: usize| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as usize % below
        };
        let mut found = 0;
        for _ in 0..200 {
            let line = |name: &str, value: &str, quote: &str| match value.is_empty() {
                true => String::new(),
                false => format!("{name} = {quote}{value}{quote}\n"),
            };
            let of_routes: Vec<_> = (0..random(12))
                .map(|_| {
                    let host = line("destination", hosts[random(hosts.len())], "\"");
                    let path = line("path", paths[random(paths.len())], "\"");
                    host + &path + &line("method", methods[random(methods.len())], "")
                })
                .collect();
            let routes = routes(of_routes);
            let index = RouteIndex::new(&routes);
            for (authority, target) in authorities.iter().flat_map(|it| targets.map(|target| (it, target))) {
                let request = request(["GET", "PUT"][random(2)], &format!("{authority}{target}"));
                let view = RequestView::from(&request);
                let first = routes.iter().position(|route| route.matches(view));
                assert_eq!(index.find(view), first, "{routes:?} {request:?}");
                found += usize::from(first.is_some());
            }
        }
        assert!(found > 1000, "{found}");
    }

    /// A call compares few of many routes.
    #[test]
    fn call_compares_few_of_many_routes() {
        let many = |of: fn(usize) -> String| routes((0..14_000).map(of).chain(["path = \"/last\"".to_owned()]));
        for (routes, uri) in [
            (many(|number| format!("destination = \"host{number}\"")), "http://host13999/x"),
            (many(|number| format!("path = \"/a/{number}/{{x}}\"")), "http://one/a/13999/x"),
            (many(|number| format!("path = \"/a/{{x}}/{number}\"")), "http://one/a/x/13999"),
            (many(|number| format!("path = \"/a/p{number}-*\"")), "http://one/a/p13999-1"),
        ] {
            let request = request("GET", uri);
            let (index, mut compared) = (RouteIndex::new(&routes), 0);
            let first = index.find_by(RequestView::from(&request), |number| {
                compared += 1;
                routes[number].matches(RequestView::from(&request))
            });
            assert_eq!((first, compared), (Some(13_999), 1), "{uri}");
        }
    }
}
