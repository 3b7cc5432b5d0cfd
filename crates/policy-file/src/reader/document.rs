//! A whole document: its policies, routes and endpoints.

use std::error::Error;
use std::fmt;
use std::path::Path;

use super::conditions::read_list;
use super::field::{Field, Kind, field, resembling};
use super::node::{Node, Table, Value, quoted};
use super::{BodySection, EndpointsSection, Policy, Problem, Problems, Route, bodies, endpoints, policy, route};

field! {
    NEVER_RETRY = "never_retry": Kind::Flag, "Turns all retries off, also those of calls that wait for one. Default false.";
    DEFAULT = "default": Kind::Text,
        "The name of the policy of requests without a route. Default: the only policy of a file without routes, or the \
         policy named \"default\", or the library's.";
}

/// The top-level fields of the document that are neither policies nor sections.
pub(super) static FIELDS: &[&Field] = &[&NEVER_RETRY, &DEFAULT];

/// The names of the sections that are not policies.
pub(super) const ROUTES: &str = "routes";
pub(super) const BODIES: &str = "bodies";
pub(super) const ENDPOINTS: &str = "endpoints";
const SECTIONS: [&str; 3] = [ROUTES, BODIES, ENDPOINTS];

/// The format of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// TOML.
    #[cfg(feature = "toml")]
    #[cfg_attr(docsrs, doc(cfg(feature = "toml")))]
    Toml,
    /// JSON.
    #[cfg(feature = "json")]
    #[cfg_attr(docsrs, doc(cfg(feature = "json")))]
    Json,
}

impl Format {
    /// Returns the format of a file, based on its extension: JSON for `.json`, otherwise TOML. Returns `None` if the
    /// crate feature for that format is off.
    pub fn of(path: &Path) -> Option<Self> {
        let is_json = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("json"));
        match is_json {
            #[cfg(feature = "json")]
            true => Some(Self::Json),
            #[cfg(feature = "toml")]
            false => Some(Self::Toml),
            #[allow(unreachable_patterns, reason = "with both formats")]
            _ => None,
        }
    }

    #[cfg_attr(not(any(feature = "toml", feature = "json")), allow(unused_variables, reason = "there is no format"))]
    fn parse(self, text: &str) -> (Table, Problems) {
        match self {
            #[cfg(feature = "toml")]
            Self::Toml => super::toml::parse(text),
            #[cfg(feature = "json")]
            Self::Json => super::json::parse(text),
        }
    }
}

/// The content of a valid policy file.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Document {
    /// `true` if retries are turned off.
    pub never_retry: bool,
    /// The name of the policy for requests that match no route. `None` means the library's defaults.
    pub default: Option<String>,
    /// The policies, in file order.
    pub policies: Vec<Policy>,
    /// The routes. The first one that matches a request applies.
    pub routes: Vec<Route>,
    /// The sections of response bodies, tried in this order for each attempt. The first one that matches applies.
    pub bodies: Vec<BodySection>,
    /// The endpoints sections.
    pub endpoints: Vec<EndpointsSection>,
}

/// All problems in a document.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Mistakes {
    /// The problems, in line order.
    pub problems: Problems,
    /// `true` if the document turns retries off, despite its problems.
    pub never_retry: bool,
}

impl Document {
    /// Reads a document.
    ///
    /// # Errors
    /// Returns all problems in the document.
    pub fn read(text: &str, format: Format) -> Result<Self, Mistakes> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let (table, mut problems) = format.parse(text);
        let is_parsed = problems.is_empty();
        let mut document = Self::default();
        if is_parsed {
            document.fill(&table, &mut problems);
        }
        if problems.is_empty() {
            return Ok(document);
        }
        problems.sort_by_key(|problem| problem.line);
        let is_never =
            |(name, node): &(String, Node)| name == NEVER_RETRY.name && matches!(node.value, Value::Flag(true));
        let never_retry = table.iter().any(is_never);
        Err(Mistakes { problems, never_retry })
    }

    /// Returns the problem of a document whose policies apply to no request, which a layer refuses. A tool may use
    /// them by their names.
    pub fn uses_no_policy(&self) -> Option<Problem> {
        let is_unused = self.default.is_none() && self.routes.is_empty() && !self.policies.is_empty();
        let reason = "has several policies, and uses none: set `default`, or add [[routes]]";
        is_unused.then(|| Problem::new(None, "", reason))
    }

    fn fill(&mut self, table: &Table, problems: &mut Problems) {
        let (mut default, mut has_policies) = (None, false);
        for (name, node) in table {
            match (&**name, &node.value) {
                ("never_retry", Value::Flag(never)) => self.never_retry = *never,
                ("never_retry", other) => {
                    let reason = format!("must be true or false, but it is {other}");
                    problems.push(Problem::new(Some(node.line), "never_retry", reason));
                }
                ("default", Value::Text(policy)) => default = Some((policy, node.line)),
                ("default", other) if !is_table(node) => {
                    let reason = format!("must be the name of a policy in quotes, or a table, but it is {other}");
                    problems.push(Problem::new(Some(node.line), "default", reason));
                }
                (ROUTES, _) => self.routes = read_list(ROUTES, node, problems, route::read),
                (BODIES, _) => self.bodies = read_list(BODIES, node, problems, bodies::read),
                (ENDPOINTS, _) => self.endpoints = endpoints::read_all(node, problems),
                ("", Value::Table(_)) => problems.push(Problem::new(Some(node.line), "", "a policy must have a name")),
                (_, Value::Table(_)) => {
                    has_policies = true;
                    self.policies.extend(policy::read(name, node, problems));
                }
                _ => {
                    let names = FIELDS.iter().map(|field| field.name).chain(SECTIONS);
                    problems.push(policy::not_a_table(name, node, resembling(name, names)));
                }
            }
        }
        if !has_policies && self.bodies.is_empty() && !self.never_retry && problems.is_empty() {
            let reason = "the document has no policy: each is a table, such as [orders]";
            problems.push(Problem::new(None, "", reason));
        }
        let names: Vec<_> = table.iter().filter(|(_, node)| is_table(node)).map(|(name, _)| &**name).collect();
        let names: Vec<_> = names.into_iter().filter(|name| !SECTIONS.contains(name)).collect();
        for route in &self.routes {
            if !names.contains(&&*route.policy) {
                problems.push(unknown(route.line, &route.place, "policy", &route.policy, &names));
            }
        }
        self.default = match &names[..] {
            // A file with a single policy and no routes needs no default.
            [only] if self.routes.is_empty() => Some((*only).to_owned()),
            _ => names.contains(&"default").then(|| "default".to_owned()),
        };
        if let Some((policy, line)) = default {
            match names.contains(&&**policy) {
                true => self.default = Some(policy.clone()),
                false => problems.push(unknown(Some(line), "default", "policy", policy, &names)),
            }
        }
        let sections = table.iter().find(|(name, _)| name == ENDPOINTS).map(|(_, node)| node);
        let sections: Vec<_> = match sections.map(|node| &node.value) {
            Some(Value::Table(table)) => table.iter().map(|(name, _)| &**name).collect(),
            _ => Vec::new(),
        };
        for policy in &self.policies {
            let Some(name) = &policy.endpoints else { continue };
            if !sections.contains(&&**name) {
                let path = format!("{}.endpoints", super::node::plain(&policy.name));
                problems.push(unknown(policy.endpoints_line, &path, "section of endpoints", name, &sections));
            }
        }
    }
}

fn is_table(node: &Node) -> bool {
    matches!(node.value, Value::Table(_))
}

/// Returns the problem for a name that the document does not define.
fn unknown(line: Option<usize>, path: &str, of: &str, name: &str, names: &[&str]) -> Problem {
    let hint = resembling(name, names.iter().copied()).map(|name| format!("; did you mean {name:?}?"));
    let hint = hint.unwrap_or_default();
    Problem::new(line, path, format!("must be the name of a {of}, but it is {}{hint}", quoted(name)))
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, problem) in self.problems.iter().enumerate() {
            let line = problem.line.map(|line| format!("line {line}: ")).unwrap_or_default();
            write!(f, "{}{line}{problem}", if number == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

impl Error for Mistakes {}
