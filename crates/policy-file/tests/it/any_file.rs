//! Whatever a text is, it gives a policy file or problems with their places. The fuzz target `files` in `fuzz/` runs
//! the same function.

use reattempt::classify::Hints;
use reattempt_policy_file::reader::{Document, Format};

/// Reads a text in both formats, and looks at everything in the result.
pub(crate) fn look(text: &str) {
    let lines = text.matches('\n').count() + 1;
    for format in [Format::Toml, Format::Json] {
        match Document::read(text, format) {
            Ok(document) => {
                for policy in &document.policies {
                    assert!(policy.seen.iter().all(|seen| seen.line.is_none_or(|line| (1..=lines).contains(&line))));
                    let _ = (policy.limits(), policy.contradictions(), policy.hints(Hints::none()));
                    for guard in &policy.guards {
                        guard.validate();
                    }
                }
                assert!(
                    document.routes.iter().all(|route| document.policies.iter().any(|own| own.name == route.policy))
                );
            }
            Err(mistakes) => {
                assert!(!mistakes.problems.is_empty());
                for problem in mistakes.problems {
                    assert!(problem.line.is_none_or(|line| (1..=lines).contains(&line)), "{problem:?}");
                    assert!(!problem.reason.is_empty());
                }
            }
        }
    }
}
