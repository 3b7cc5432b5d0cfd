//! The reader of policy files, for tools that check or show policies.
//!
//! It reads a document in TOML or JSON, or the one-line form of a policy for a command line. It returns policies with
//! the library's own schedules, budgets, limits and guards, or all problems with their positions. The one-line form
//! (`exponential:base=50ms,jitter=equal`) is converted to the table that a file would contain, so both have the same
//! names and rules. Programs that only need a layer use [`PolicyFile`](crate::PolicyFile) instead.
//!
//! ```
//! use reattempt_policy_file::reader::{Document, Format};
//!
//! let document = Document::read("[orders]\nmax_attempts = 4\n", Format::Toml)?;
//! assert_eq!(document.policies[0].limits().max_attempts, 4);
//!
//! let error = Document::read("[orders]\nmax_atempts = 4\n", Format::Toml).unwrap_err();
//! let text = error.problems[0].in_file(&"policies.toml");
//! assert_eq!(text, "policies.toml:2: orders.max_atempts is not known here; did you mean `max_attempts`?");
//! # Ok::<(), reattempt_policy_file::reader::Mistakes>(())
//! ```

mod bodies;
mod budget;
mod conditions;
mod destination;
mod document;
mod endpoints;
pub(crate) mod field;
mod fields;
mod guard;
#[cfg(feature = "json")]
mod json;
mod node;
mod page;
mod policy;
mod problem;
mod route;
pub(crate) mod route_index;
mod schedule;
mod schema;
#[cfg(feature = "toml")]
mod toml;
mod verdicts;
mod word;

use reattempt::profile;
use reattempt::profile::Profile;
use reattempt::schedule::SharedSchedule;

pub use bodies::BodySection;
pub use document::{Document, Format, Mistakes};
pub use endpoints::EndpointsSection;
pub use field::did_you_mean;
pub use fields::Seen;
pub use guard::{GuardKind, GuardWord};
pub(crate) use page::page;
pub use policy::Policy;
pub use problem::{Problem, Problems};
pub use route::Route;
pub use schedule::cap_of;
pub(crate) use schema::schema;

/// Parses the one-line form of a policy: the name of a profile or a kind of schedule, optionally followed by settings.
///
/// # Errors
/// Returns all problems as one line of text.
pub fn parse_word(word: &str) -> Result<Policy, String> {
    let table = word::table(word)?;
    let node = node::Node { line: 1, value: node::Value::Table(table) };
    let mut problems = Problems::new();
    let policy = policy::read(word::TABLE, &node, &mut problems);
    match policy.filter(|_| problems.is_empty()) {
        Some(policy) => Ok(Policy { name: word.to_owned(), ..policy }),
        None => Err(in_a_word(problems)),
    }
}

/// Formats all problems as one line of text.
fn in_a_word(problems: Problems) -> String {
    let problems = problems.iter().map(|problem| {
        let path = problem.path.strip_prefix(word::TABLE).unwrap_or(&problem.path);
        let text = format!("{} {}", path.trim_start_matches('.'), problem.reason);
        text.trim_start().to_owned()
    });
    problems.collect::<Vec<_>>().join("; ")
}

/// Returns the profile with this name. Hyphens are treated as underscores.
fn profile_named(name: &str) -> Option<Profile<SharedSchedule>> {
    let name = name.replace('-', "_");
    profile::all().into_iter().find(|(own, _)| *own == name).map(|(_, profile)| profile)
}

/// Returns the names of all profiles, separated by commas.
pub fn profile_names() -> String {
    profile::all().map(|(name, _)| name).join(", ")
}
