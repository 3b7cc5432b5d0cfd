//! `lab get`: one real HTTP request through the retry layer, with a time line of its attempts.
//!
//! Input: a URL and a policy. Output: the attempts of the call, from the layer's own report.

mod client;
mod line;

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use http::{HeaderName, HeaderValue, Uri};
use reattempt::Report;
use serde::Serialize;

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::policy::{self, Policy};
use crate::text;
use line::Attempt;

/// The options of `lab get`.
#[derive(Debug, Args)]
#[command(allow_negative_numbers = true)]
pub(crate) struct Get {
    /// The URL: http://… or https://…
    #[arg(value_name = "URL", value_parser = parse_url)]
    url: Uri,
    /// A profile or a schedule, as for plan; with --file, the name of a policy in the file
    #[arg(long, short, value_name = "POLICY")]
    policy: Option<String>,
    /// A TOML file with policies, as for plan; uses the first one, unless --policy names another
    #[arg(long, short, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Time limit for each attempt
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    attempt_timeout: Option<Duration>,
    /// A header, such as "accept: text/plain"; may be repeated
    #[arg(long = "header", short = 'H', value_name = "FIELD", value_parser = parse_header)]
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Parses a URL with a scheme and a host that the client supports.
fn parse_url(text: &str) -> Result<Uri, String> {
    let url: Uri = text.parse().map_err(|error| format!("{error}"))?;
    match url.scheme_str() {
        // The client would not send it, but pictures and pages would show it.
        Some("http" | "https") if url.authority().is_some_and(|authority| authority.as_str().contains('@')) => {
            Err("it must have no user and no password; a header may have them".to_owned())
        }
        Some("http" | "https") if url.host().is_some_and(|host| !host.is_empty()) => Ok(url),
        _ => Err("it must begin with http:// or https:// and name a host".to_owned()),
    }
}

fn parse_header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let (name, value) = text.split_once(':').ok_or("it must be NAME: VALUE")?;
    let name = name.trim().parse().map_err(|error| format!("{error}"))?;
    let value = value.trim().parse().map_err(|error| format!("{error}"))?;
    Ok((name, value))
}

/// The result of a call.
#[derive(Debug)]
struct Ended {
    /// Status and bytes of the answer, or the error with its causes.
    answer: Result<(http::StatusCode, u64), String>,
    report: Option<Report>,
    /// The time until the head of the answer, or the error.
    head: Duration,
    /// The time until the end of its body.
    end: Duration,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    url: String,
    policy: &'a str,
    status: Option<u16>,
    bytes: Option<u64>,
    error: Option<&'a str>,
    seconds: f64,
    stopped: &'a str,
    attempts: &'a [Attempt],
}

impl Get {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        let policy = self.policy()?;
        let watched = common.prints_text() && std::io::stderr().is_terminal();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .map_err(|error| LabError::new(format!("cannot start: {error}")))?;
        let ended = runtime.block_on(client::call(self, &policy, common.seed, watched))?;
        let attempts = line::attempts(&ended);
        let stopped = ended
            .report
            .as_ref()
            .map_or_else(|| reattempt::StopReason::Succeeded.to_string(), |report| report.stop_reason().to_string());
        let (answer, error) = match &ended.answer {
            Ok(answer) => (Some(answer), None),
            Err(error) => (None, Some(&**error)),
        };
        let document = Document {
            url: self.url.to_string(),
            policy: &policy.name,
            status: answer.map(|(status, _)| status.as_u16()),
            bytes: answer.map(|(_, bytes)| *bytes),
            error,
            seconds: ended.end.as_secs_f64(),
            stopped: &stopped,
            attempts: &attempts,
        };
        let figure = || line::figure(&self.url.to_string(), &attempts);
        common.show(out, &document, Some(&figure), |out| self.print(&ended, &attempts, &stopped, out))?;
        Ok(match &ended.answer {
            Ok((status, _)) if !status.is_client_error() && !status.is_server_error() => Found::Fine,
            _ => Found::Problems,
        })
    }

    fn policy(&self) -> Result<Policy, LabError> {
        let mut policy = match (&self.file, &self.policy) {
            (None, word) => policy::parse_word(word.as_deref().unwrap_or("standard"))
                .map_err(|error| LabError::new(format!("invalid value for '--policy': {error}")))?,
            (Some(file), name) => {
                let policies = policy::load(file)?;
                let named = |policy: &&Policy| name.as_ref().is_none_or(|name| *name == policy.name);
                policies.iter().find(named).cloned().ok_or_else(|| {
                    let name = name.as_deref().unwrap_or_default();
                    let hint = policy::did_you_mean(name, policies.iter().map(|policy| &*policy.name));
                    LabError::new(format!("{} has no policy of the name {name}{hint}", file.display()))
                })?
            }
        };
        policy.attempt_timeout = self.attempt_timeout.or(policy.attempt_timeout);
        Ok(policy)
    }

    fn print(&self, ended: &Ended, attempts: &[Attempt], stopped: &str, out: &mut dyn Write) -> Result<(), LabError> {
        let took = text::brief(ended.end);
        let tries = match attempts.len() {
            1 => "1 attempt".to_owned(),
            count => format!("{count} attempts"),
        };
        match &ended.answer {
            Ok((status, bytes)) => {
                writeln!(out, "{status}, {bytes} bytes after {tries} and {took}: {stopped}\n")?;
            }
            // The layer's part ended with the head, so its stop reason would be misleading here.
            Err(error) if attempts.last().is_some_and(|last| last.succeeded) => {
                writeln!(out, "{error}, after {tries} and {took}\n")?;
            }
            Err(error) => writeln!(out, "{error}, after {tries} and {took}: {stopped}\n")?,
        }
        line::print(attempts, out)
    }
}
