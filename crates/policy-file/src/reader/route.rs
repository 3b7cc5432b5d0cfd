//! A route: the requests to which a policy applies.

use std::fmt;

use reattempt::classify::RequestView;

use super::Problems;
use super::destination::Destination;
use super::field::{Field, Kind, field};
use super::fields::Fields;
use super::node::{Node, Value};

field! {
    POLICY = "policy": Kind::Text, "The name of the policy. Required.";
    DESTINATION = "destination": Kind::Text,
        "The server: \"orders.internal\", \"orders.internal:8080\" or \"https://orders.example\". Default: any.";
    METHOD = "method": Kind::TextOrTexts, "The HTTP method, or a list of methods. Default: any.";
    PATH = "path": Kind::Text,
        "The path: \"/v1/orders\", \"/v1/orders/{id}\" with any one segment, or \"/v1/*\" with any rest. Default: any.";
    GRPC = "grpc": Kind::Text, "The gRPC service, or one of its methods: \"inventory.Stock\" or \"inventory.Stock/Count\".";
}

/// The fields of a route.
pub(super) static FIELDS: &[&Field] = &[&POLICY, &DESTINATION, &METHOD, &PATH, &GRPC];

/// A route to a policy, with conditions on the request. A condition that is not set matches every request.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Route {
    /// The name of the policy.
    pub policy: String,
    destination: Option<Destination>,
    methods: Vec<String>,
    path: Option<Path>,
    /// The conditions as written in the file.
    conditions: Vec<String>,
    pub(super) line: Option<usize>,
    /// The path of the policy's name, for problems.
    pub(super) place: String,
}

/// The form of a path.
#[derive(Debug, Clone)]
pub(super) enum Path {
    /// The segments; `None` matches any segment.
    Segments(Vec<Option<String>>),
    /// The segments before a final `*`, and the text right before the `*`, which the rest must start with.
    Prefix(Vec<Option<String>>, String),
}

impl Route {
    /// Returns the host in lower case, without a final dot.
    pub(super) fn host(&self) -> Option<&str> {
        self.destination.as_ref().map(|server| &*server.host)
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.path.as_ref()
    }

    /// Returns `true` if the route matches this request.
    ///
    /// Paths are compared exactly as sent, without normalizing percent-encoding or letter case.
    pub fn matches(&self, request: RequestView<'_>) -> bool {
        (self.methods.is_empty() || self.methods.iter().any(|method| method == request.method()))
            && self.path.as_ref().is_none_or(|path| path.matches(request.path()))
            && self.destination.as_ref().is_none_or(|server| server.matches(request.scheme(), request.authority()))
    }
}

/// The output lists the conditions.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.conditions.is_empty() {
            true => f.write_str("any request"),
            false => f.write_str(&self.conditions.join(", ")),
        }
    }
}

impl Path {
    fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('/')?;
        let (text, prefix) = match text.strip_suffix('*') {
            Some(text) => (text, true),
            None => (text, false),
        };
        let segment = |segment: &str| match segment.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => (!name.is_empty() && !name.contains(['{', '}', '*'])).then_some(None),
            None => (!segment.contains(['{', '}', '*', '?', '#'])).then(|| Some(segment.to_owned())),
        };
        let mut segments: Vec<Option<String>> = text.split('/').map(segment).collect::<Option<_>>()?;
        if !prefix {
            return Some(Self::Segments(segments));
        }
        // The last segment is the prefix of the rest, so it cannot be a name in braces.
        let last = segments.pop()??;
        Some(Self::Prefix(segments, last))
    }

    fn matches(&self, path: &str) -> bool {
        let Some(mut rest) = path.strip_prefix('/') else { return false };
        let (segments, prefix) = match self {
            Self::Segments(segments) => (segments, None),
            Self::Prefix(segments, prefix) => (segments, Some(prefix)),
        };
        for (number, wanted) in segments.iter().enumerate() {
            let is_last = prefix.is_none() && number + 1 == segments.len();
            let segment = match (is_last, rest.split_once('/')) {
                (false, Some((segment, after))) => {
                    rest = after;
                    segment
                }
                (true, None) => rest,
                _ => return false,
            };
            if wanted.as_ref().is_some_and(|wanted| wanted != segment) || wanted.is_none() && segment.is_empty() {
                return false;
            }
        }
        prefix.is_none_or(|prefix| rest.starts_with(&**prefix))
    }
}

/// Returns the routes in a list, except those with problems.
pub(super) fn read_all(node: &Node, problems: &mut Problems) -> Vec<Route> {
    let Value::List(list) = &node.value else {
        let reason = format!("must be a list of tables, such as [[routes]], but it is {}", node.value);
        problems.push(super::Problem::new(Some(node.line), "routes", reason));
        return Vec::new();
    };
    list.iter().enumerate().filter_map(|(number, node)| read(number, node, problems)).collect()
}

fn read(number: usize, node: &Node, problems: &mut Problems) -> Option<Route> {
    let path = format!("routes[{number}]");
    let Value::Table(table) = &node.value else {
        let reason = format!("must be a table, but it is {}", node.value);
        problems.push(super::Problem::new(Some(node.line), path, reason));
        return None;
    };
    let (mut seen, before) = (Vec::new(), problems.len());
    let mut fields = Fields::new(path, table, problems, &mut seen);
    let policy = fields.text(&POLICY).map(str::to_owned);
    let line = fields.line(&POLICY).or(Some(node.line));
    let mut conditions = Vec::new();
    let destination = fields.text(&DESTINATION).and_then(|text| {
        conditions.push(format!("destination {text}"));
        let destination = Destination::parse(text);
        if destination.is_none() {
            let wanted = "a host with an optional port and scheme, such as \"https://orders.example:8443\"";
            fields.problem(DESTINATION.name, format!("must be {wanted}, but it is {}", super::node::quoted(text)));
        }
        destination
    });
    let methods = fields.parsed(&METHOD, |word| {
        let is_method = !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'-');
        if is_method { Ok(word.to_owned()) } else { Err("it must be a method in capitals, such as GET".to_owned()) }
    });
    if !methods.is_empty() {
        conditions.push(format!("method {}", methods.join(" or ")));
    }
    let own_path = fields.text(&PATH).and_then(|text| {
        conditions.push(format!("path {text}"));
        let path = Path::parse(text);
        if path.is_none() {
            let wanted = "a path that begins with /, with {…} for a whole segment, and * only at its end";
            fields.problem(PATH.name, format!("must be {wanted}, but it is {}", super::node::quoted(text)));
        }
        path
    });
    let method_of_grpc = fields.text(&GRPC).and_then(|text| {
        conditions.push(format!("gRPC {text}"));
        let path = of_grpc(text);
        if path.is_none() {
            let wanted =
                "a service such as \"inventory.Stock\", or one of its methods such as \"inventory.Stock/Count\"";
            fields.problem(GRPC.name, format!("must be {wanted}, but it is {}", super::node::quoted(text)));
        }
        path
    });
    if method_of_grpc.is_some() && (own_path.is_some() || !methods.is_empty()) {
        fields.problem(GRPC.name, "stands for a path and a method, so `path` and `method` must not be set beside it");
    }
    fields.finish(&[FIELDS]);
    let Some(policy) = policy else {
        if problems.len() == before {
            problems.push(super::Problem::new(
                line,
                format!("routes[{number}].policy"),
                "is missing: the name of a policy",
            ));
        }
        return None;
    };
    let path = method_of_grpc.or(own_path);
    (problems.len() == before).then(|| Route {
        policy,
        destination,
        methods,
        path,
        conditions,
        line,
        place: format!("routes[{number}].policy"),
    })
}

/// Returns the path of a gRPC service or method.
fn of_grpc(text: &str) -> Option<Path> {
    let is_name = |name: &str| {
        let is_legal = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'.';
        !name.is_empty() && name.bytes().all(is_legal)
    };
    match text.split_once('/') {
        None if is_name(text) => Some(Path::Prefix(vec![Some(text.to_owned())], String::new())),
        Some((service, method)) if is_name(service) && is_name(method) => {
            Some(Path::Segments(vec![Some(service.to_owned()), Some(method.to_owned())]))
        }
        _ => None,
    }
}
