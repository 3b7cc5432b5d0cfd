//! The conditions on a request: its destination, its method and its path.

use std::fmt;

use reattempt::classify::RequestView;

use super::destination::Destination;
use super::field::{Kind, field};
use super::fields::Fields;
use super::node::{Node, Table, Value};
use super::{Problem, Problems};

field! {
    DESTINATION = "destination": Kind::Text,
        "The server: \"orders.internal\", \"orders.internal:8080\" or \"https://orders.example\". Default: any.";
    METHOD = "method": Kind::TextOrTexts, "The HTTP method, or a list of methods. Default: any.";
    PATH = "path": Kind::Text,
        "The path: \"/v1/orders\", \"/v1/orders/{id}\" with any one segment, or \"/v1/*\" with any rest. Default: any.";
}

/// Conditions on a request. A condition that is not set matches every request.
#[derive(Debug, Clone, Default)]
pub(super) struct Conditions {
    destination: Option<Destination>,
    pub(super) methods: Vec<String>,
    pub(super) path: Option<Path>,
    /// The conditions as written in the file.
    pub(super) words: Vec<String>,
}

/// The form of a path.
#[derive(Debug, Clone)]
pub(super) enum Path {
    /// The segments; `None` matches any segment.
    Segments(Vec<Option<String>>),
    /// The segments before a final `*`, and the text right before the `*`, which the rest must start with.
    Prefix(Vec<Option<String>>, String),
}

impl Conditions {
    /// Reads the conditions that all sections have.
    pub(super) fn read(fields: &mut Fields<'_>) -> Self {
        let mut words = Vec::new();
        let destination = fields.text(&DESTINATION).and_then(|text| {
            words.push(format!("destination {text}"));
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
            words.push(format!("method {}", methods.join(" or ")));
        }
        let path = fields.text(&PATH).and_then(|text| {
            words.push(format!("path {text}"));
            let path = Path::parse(text);
            if path.is_none() {
                let wanted = "a path that begins with /, with {…} for a whole segment, and * only at its end";
                fields.problem(PATH.name, format!("must be {wanted}, but it is {}", super::node::quoted(text)));
            }
            path
        });
        Self { destination, methods, path, words }
    }

    /// Returns the host in lower case, without a final dot.
    pub(super) fn host(&self) -> Option<&str> {
        self.destination.as_ref().map(|server| &*server.host)
    }

    /// Returns `true` if all conditions match this request.
    pub(super) fn matches(&self, request: RequestView<'_>) -> bool {
        (self.methods.is_empty() || self.methods.iter().any(|method| method == request.method()))
            && self.path.as_ref().is_none_or(|path| path.matches(request.path()))
            && self.destination.as_ref().is_none_or(|server| server.matches(request.scheme(), request.authority()))
    }
}

/// The output lists the conditions.
impl fmt::Display for Conditions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.words.is_empty() {
            true => f.write_str("any request"),
            false => f.write_str(&self.words.join(", ")),
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

/// Reads a list of tables such as `[[routes]]`, and returns those without problems. `read` gets the place of each table
/// for problems, and its line.
pub(super) fn read_list<T>(
    section: &str,
    node: &Node,
    problems: &mut Problems,
    read: fn(&str, (&Table, usize), &mut Problems) -> Option<T>,
) -> Vec<T> {
    let Value::List(list) = &node.value else {
        let reason = format!("must be a list of tables, such as [[{section}]], but it is {}", node.value);
        problems.push(Problem::new(Some(node.line), section, reason));
        return Vec::new();
    };
    let mut entries = Vec::new();
    for (number, node) in list.iter().enumerate() {
        let place = format!("{section}[{number}]");
        match &node.value {
            Value::Table(table) => entries.extend(read(&place, (table, node.line), problems)),
            other => {
                problems.push(Problem::new(Some(node.line), place, format!("must be a table, but it is {other}")));
            }
        }
    }
    entries
}
