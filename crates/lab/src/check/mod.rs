//! `lab check`: the errors and unusual values in a file of retry policies, and its effect.
//!
//! Input: a gRPC service config (JSON) or a policy file (TOML or JSON). Output: every error with its place,
//! a warning for each value outside of the recommended ranges, and a description of the retries.

mod describe;
mod explain;
mod policies;
mod ranges;
mod service_config;
mod words;

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::PathBuf;

use clap::Args;
use clap::builder::styling::AnsiColor;
use serde::de::IgnoredAny;
use serde::{Serialize, Serializer};

use crate::common::Common;
use crate::error::{Found, LabError};
use crate::policy::{self, Format, Problem};

/// The options of `lab check`.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// The file, or - for standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Count warnings as errors
    #[arg(long)]
    strict: bool,
    /// Accept numbers in quotes and durations such as ".5s", as other libraries do (JSON only)
    #[arg(long)]
    lenient: bool,
    /// Show only the policy of one request to this server, by a route such as /path, "POST /path" or
    /// package.Service/Method (after FILE; policy files only)
    #[arg(long, value_names = ["DEST", "ROUTE"], num_args = 1..=2)]
    explain: Vec<String>,
}

/// The errors and warnings of a file, and a description of its policies.
#[derive(Debug, Default, Serialize)]
struct Findings {
    #[serde(serialize_with = "as_places")]
    errors: Vec<Problem>,
    #[serde(serialize_with = "as_places")]
    warnings: Vec<Problem>,
    /// The retries and their times: a paragraph for each policy or method.
    descriptions: Vec<Description>,
}

/// A problem in the JSON output.
#[derive(Serialize)]
struct Place<'a> {
    line: Option<usize>,
    path: &'a str,
    reason: &'a str,
}

fn as_places<S: Serializer>(problems: &[Problem], serializer: S) -> Result<S::Ok, S::Error> {
    let places = problems.iter().map(|Problem { line, path, reason, .. }| Place { line: *line, path, reason });
    serializer.collect_seq(places)
}

/// The description of a policy.
#[derive(Debug, Serialize)]
struct Description {
    /// The name of the policy, or of the methods.
    of: String,
    sentences: Vec<String>,
}

/// Returns `true` for a JSON object without a field of a service config, misspelt ones included.
fn is_policy_file(text: &str) -> bool {
    const OF_SERVICE_CONFIGS: [&str; 5] =
        ["methodConfig", "retryThrottling", "loadBalancingConfig", "loadBalancingPolicy", "healthCheckConfig"];
    // Values are skipped, so their nesting does not matter.
    let fields: BTreeMap<String, IgnoredAny> = serde_json::from_str(text).unwrap_or_default();
    let is_of_config = |field: &String| {
        OF_SERVICE_CONFIGS.contains(&&**field) || !policy::did_you_mean(field, OF_SERVICE_CONFIGS).is_empty()
    };
    !fields.is_empty() && !fields.keys().any(is_of_config)
}

impl Check {
    pub(crate) fn run(&self, common: &Common, out: &mut dyn Write) -> Result<Found, LabError> {
        common.no_picture()?;
        let asked = explain::Asked::parse(&self.explain)?;
        let text = self.read()?;
        // A TOML document cannot begin with a brace, and a JSON object begins with nothing else.
        let is_json = text.trim_start().starts_with('{') || self.is_json();
        let findings = match is_json {
            true if is_policy_file(&text) => policies::check(&text, Format::Json, asked.as_ref(), common.seed()),
            true if asked.is_some() => {
                return Err(LabError::new("--explain needs a policy file, and this is a gRPC service config"));
            }
            true => service_config::check(&text, self.lenient, common.seed()),
            false => policies::check(&text, Format::Toml, asked.as_ref(), common.seed()),
        };
        common.show(out, &findings, None, |out| self.print(&findings, out))?;
        let counted = findings.errors.len() + if self.strict { findings.warnings.len() } else { 0 };
        Ok(if counted == 0 { Found::Fine } else { Found::Problems })
    }

    fn is_json(&self) -> bool {
        self.file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
    }

    fn read(&self) -> Result<String, LabError> {
        if !self.is_stdin() {
            return policy::read_text(&self.file).map_err(|error| LabError::new(error.to_string()));
        }
        let mut text = String::new();
        let read = std::io::stdin().read_to_string(&mut text);
        read.map(|_| text).map_err(|error| LabError::new(format!("cannot read <stdin>: {error}")))
    }

    fn is_stdin(&self) -> bool {
        self.file.as_os_str() == "-"
    }

    fn name(&self) -> String {
        if self.is_stdin() { "<stdin>".to_owned() } else { self.file.display().to_string() }
    }

    fn print(&self, findings: &Findings, out: &mut dyn Write) -> Result<(), LabError> {
        let file = self.name();
        let error = crate::error::style();
        let warning = AnsiColor::Yellow.on_default().bold();
        for problem in &findings.errors {
            writeln!(out, "{}", problem.in_file_as(&file, &format!("{error}error{error:#}")))?;
        }
        for problem in &findings.warnings {
            writeln!(out, "{}", problem.in_file_as(&file, &format!("{warning}warning{warning:#}")))?;
        }
        let mut first = findings.errors.is_empty() && findings.warnings.is_empty();
        for description in &findings.descriptions {
            if !std::mem::take(&mut first) {
                writeln!(out)?;
            }
            writeln!(out, "{}", description.of)?;
            for sentence in &description.sentences {
                writeln!(out, "  {sentence}")?;
            }
        }
        Ok(())
    }
}
