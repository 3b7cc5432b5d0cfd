//! Policies in a TOML file, or in a word on the command line.
//!
//! Input: a text. Output: policies made of the library's own schedules, budgets and limits, or all
//! problems of the text with their places. A word (`exponential:base=50ms,jitter=equal`) is
//! rewritten as a table of the file's form, so there is one set of names and rules.

mod budget;
mod fields;
mod guard;
mod problem;
mod read;
pub(crate) mod schedule;
mod word;

use std::path::Path;
use std::time::Duration;

use reattempt::profile;
use reattempt::profile::Profile;
use reattempt::retry::Limits;
use reattempt::schedule::SharedSchedule;

use crate::error::LabError;

pub(crate) use fields::Seen;
pub(crate) use guard::{GuardWord, Kind as GuardKind};
pub(crate) use problem::{Problem, Problems};
pub(crate) use read::read;

/// A policy, as its parts.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    pub(crate) name: String,
    pub(crate) profile: Profile<SharedSchedule>,
    pub(crate) max_server_delay: Duration,
    pub(crate) attempt_timeout: Option<Duration>,
    /// The description of the budget; `None` if the protocol's default applies.
    pub(crate) budget: Option<String>,
    /// `true` if many processes share the budget.
    pub(crate) is_fleet: bool,
    /// The guards of each attempt, in the order in which they decide.
    pub(crate) guards: Vec<GuardWord>,
    /// The values that the text sets, which `lab check` compares with the usual ones.
    pub(crate) seen: Vec<Seen>,
}

impl Policy {
    /// Returns the limits of a call.
    pub(crate) fn limits(&self) -> Limits {
        let mut limits = Limits::default();
        limits.max_attempts = self.profile.max_attempts;
        limits.max_elapsed = self.profile.max_elapsed;
        limits.max_server_delay = self.max_server_delay;
        limits
    }
}

/// Reads the policies of a file.
pub(crate) fn load(path: &Path) -> Result<Vec<Policy>, LabError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| LabError::new(format!("cannot read {}: {error}", path.display())))?;
    read(&text).map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(|problem| problem.in_file(&path.display())).collect();
        LabError::new(lines.join("\n       "))
    })
}

/// Parses a word: the name of a profile or of a kind of schedule, with changes.
pub(crate) fn parse_word(word: &str) -> Result<Policy, String> {
    let text = word::table(word)?;
    let policy = read(&text).map_err(in_a_word)?.pop().ok_or("it is empty")?;
    Ok(Policy { name: word.to_owned(), ..policy })
}

/// Formats the problems of a word on one line.
fn in_a_word(problems: Problems) -> String {
    let problems = problems.iter().map(|problem| {
        let path = problem.path.strip_prefix(word::TABLE).unwrap_or(&problem.path);
        let text = format!("{} {}", path.trim_start_matches('.'), problem.reason);
        text.trim_start().to_owned()
    });
    problems.collect::<Vec<_>>().join("; ")
}

/// Returns the profile of this name; hyphens count as underscores.
fn profile_named(name: &str) -> Option<Profile<SharedSchedule>> {
    let name = name.replace('-', "_");
    profile::all().into_iter().find(|(own, _)| *own == name).map(|(_, profile)| profile)
}

/// Returns the names of all profiles, separated by commas.
pub(crate) fn profile_names() -> String {
    profile::all().map(|(name, _)| name).join(", ")
}

#[cfg(test)]
mod tests;
