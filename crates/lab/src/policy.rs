//! Policies in a file or in a word, as the crate `reattempt-policy-file` reads them for layers.

use std::path::Path;

use crate::error::LabError;

pub(crate) use reattempt_policy_file::reader::{
    BodySection, Document, Format, GuardKind, GuardWord, Policy, Seen, cap_of, did_you_mean, parse_word, profile_names,
};
pub(crate) use reattempt_policy_file::{Problem, read_text};

/// Reads the policies of a file.
pub(crate) fn load(path: &Path) -> Result<Vec<Policy>, LabError> {
    let text = read_text(path).map_err(|error| LabError::new(error.to_string()))?;
    let document = Document::read(&text, Format::of(path).unwrap_or(Format::Toml));
    document.map(|document| document.policies).map_err(|mistakes| {
        let lines: Vec<_> = mistakes.problems.iter().map(|problem| problem.in_file(&path.display())).collect();
        LabError::new(lines.join("\n       "))
    })
}
