//! Policies in a file or in a word, as the crate `reattempt-policy-file` reads them for layers.

use std::path::Path;

use reattempt_policy_file::reader::{Document, Format};

use crate::error::LabError;

pub(crate) use reattempt_policy_file::Problem;
pub(crate) use reattempt_policy_file::reader::{
    GuardKind, GuardWord, Policy, Problems, Seen, cap_of, did_you_mean, parse_word, profile_names,
};

/// Reads the policies of a file.
pub(crate) fn load(path: &Path) -> Result<Vec<Policy>, LabError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| LabError::new(format!("cannot read {}: {error}", path.display())))?;
    read(&text).map_err(|problems| {
        let lines: Vec<_> = problems.iter().map(|problem| problem.in_file(&path.display())).collect();
        LabError::new(lines.join("\n       "))
    })
}

/// Returns the policies of a text, in its order, or all of its problems.
pub(crate) fn read(text: &str) -> Result<Vec<Policy>, Problems> {
    Document::read(text, Format::Toml).map(|document| document.policies).map_err(|mistakes| mistakes.problems)
}
