//! Verdicts for single statuses and codes, such as `501 retry`.

use http::StatusCode;
use reattempt::Verdict;
use reattempt::schedule::{Failure, FailureKind};

use super::field::did_you_mean;

/// The patterns of both forms, for the schema.
pub(super) const STATUS: &str = "^[1-9][0-9][0-9] +(retry|return|pending|not-processed)$";
pub(super) const CODE: &str = "^[A-Z_]+ +(retry|return)$";

/// The names of gRPC's codes that are no success.
const CODES: &str = "CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED \
                     RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE \
                     DATA_LOSS UNAUTHENTICATED";

/// Reads a status and its verdict.
pub(super) fn of_status(text: &str) -> Result<(StatusCode, Verdict), String> {
    let (status, word) = pair(text).ok_or("it must be a status and a verdict, such as \"501 retry\"")?;
    let status: StatusCode = status.parse().map_err(|_| format!("`{status}` is no status from 100 to 999"))?;
    let verdict = match word {
        "pending" => Verdict::pending(),
        "not-processed" => Verdict::NotProcessed(Failure::new(FailureKind::Server)),
        word => retried(word, &["retry", "return", "pending", "not-processed"])?,
    };
    Ok((status, verdict))
}

/// Reads the name of a code and its verdict.
pub(super) fn of_code(text: &str) -> Result<(&'static str, Verdict), String> {
    let (name, word) = pair(text).ok_or("it must be a code and a verdict, such as \"ABORTED retry\"")?;
    let mut codes = CODES.split(' ');
    let code = codes.find(|code| *code == name);
    let code = code.ok_or_else(|| format!("`{name}` is no code{}", did_you_mean(name, CODES.split(' '))))?;
    Ok((code, retried(word, &["retry", "return"])?))
}

fn pair(text: &str) -> Option<(&str, &str)> {
    let (first, second) = text.split_once(' ')?;
    Some((first, second.trim_start()))
}

fn retried(word: &str, words: &[&str]) -> Result<Verdict, String> {
    match word {
        "retry" => Ok(Verdict::transient()),
        "return" => Ok(Verdict::Permanent),
        other => {
            let similar = did_you_mean(other, words.iter().copied());
            Err(format!("the verdict must be one of {}, but it is `{other}`{similar}", words.join(", ")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_named() {
        for (text, expected) in [
            ("501", "it must be a status and a verdict, such as \"501 retry\""),
            ("99 retry", "`99` is no status from 100 to 999"),
            (
                "501 retri",
                "the verdict must be one of retry, return, pending, not-processed, but it is `retri`; did you mean `retry`?",
            ),
        ] {
            assert_eq!(of_status(text).unwrap_err(), expected);
        }
        for (text, expected) in [
            ("ABORTED", "it must be a code and a verdict, such as \"ABORTED retry\""),
            ("ABORTD retry", "`ABORTD` is no code; did you mean `ABORTED`?"),
            ("OK retry", "`OK` is no code"),
            ("ABORTED pending", "the verdict must be one of retry, return, but it is `pending`"),
        ] {
            assert_eq!(of_code(text).unwrap_err(), expected);
        }
    }
}
