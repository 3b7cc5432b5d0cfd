//! A route: the requests to which a policy applies.

use std::fmt;

use reattempt::classify::RequestView;

use super::Problems;
use super::conditions::{Conditions, DESTINATION, METHOD, PATH, Path};
use super::field::{Field, Kind, field};
use super::fields::Fields;
use super::node::Table;

field! {
    POLICY = "policy": Kind::Text, "The name of the policy. Required.";
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
    conditions: Conditions,
    pub(super) line: Option<usize>,
    /// The path of the policy's name, for problems.
    pub(super) place: String,
}

impl Route {
    pub(super) fn host(&self) -> Option<&str> {
        self.conditions.host()
    }

    pub(super) fn path(&self) -> Option<&Path> {
        self.conditions.path.as_ref()
    }

    /// Returns `true` if the route matches this request.
    ///
    /// Paths are compared exactly as sent, without normalizing percent-encoding or letter case.
    pub fn matches(&self, request: RequestView<'_>) -> bool {
        self.conditions.matches(request)
    }
}

/// The output lists the conditions.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.conditions.fmt(f)
    }
}

/// Returns the route in a table, or `None` if a problem was reported.
pub(super) fn read(place: &str, (table, line): (&Table, usize), problems: &mut Problems) -> Option<Route> {
    let (mut seen, before) = (Vec::new(), problems.len());
    let mut fields = Fields::new(place.to_owned(), table, problems, &mut seen);
    let policy = fields.text(&POLICY).map(str::to_owned);
    let line = fields.line(&POLICY).or(Some(line));
    let mut conditions = Conditions::read(&mut fields);
    let method_of_grpc = fields.text(&GRPC).and_then(|text| {
        conditions.words.push(format!("gRPC {text}"));
        let path = of_grpc(text);
        if path.is_none() {
            let wanted =
                "a service such as \"inventory.Stock\", or one of its methods such as \"inventory.Stock/Count\"";
            fields.problem(GRPC.name, format!("must be {wanted}, but it is {}", super::node::quoted(text)));
        }
        path
    });
    if method_of_grpc.is_some() && (conditions.path.is_some() || !conditions.methods.is_empty()) {
        fields.problem(GRPC.name, "stands for a path and a method, so `path` and `method` must not be set beside it");
    }
    fields.finish(&[FIELDS]);
    let Some(policy) = policy else {
        if problems.len() == before {
            problems.push(super::Problem::new(line, format!("{place}.policy"), "is missing: the name of a policy"));
        }
        return None;
    };
    conditions.path = method_of_grpc.or(conditions.path);
    let place = format!("{place}.policy");
    (problems.len() == before).then_some(Route { policy, conditions, line, place })
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
