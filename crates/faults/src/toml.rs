//! Scripts in TOML.

use std::error::Error;
use std::fmt;
use std::io;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use toml::Spanned;

use crate::chances::{Chances, Per};
use crate::script::{Fault, Script, Step};

impl<F: Fault + DeserializeOwned> Script<F> {
    /// Reads a script in TOML.
    ///
    /// ```
    /// use reattempt_faults::{Reply, Script};
    ///
    /// let script = Script::<Reply>::from_toml(r#"
    ///     [[step]]
    ///     fault = { status = 503, headers = { retry-after = "1" } }
    ///     times = 2
    ///
    ///     [[step]]
    ///     fault = { body = "receipt", cut = 0, end = "reset" }
    ///     call = "POST /pay"
    ///     delay-ms = 100
    ///
    ///     [chances]
    ///     seed = 7
    ///     per = "call"
    ///     faults = [{ per-mille = 100, fault = { end = "close" } }]
    /// "#)?;
    /// # drop(script);
    /// # Ok::<(), reattempt_faults::ScriptError>(())
    /// ```
    ///
    /// The words in a script are the names of the Rust values, in lower case with hyphens. A step may have `delay-ms`,
    /// `times` or `always`, `call`, `connection`, and `from-ms` with `to-ms`. `may-remain = true` at the top allows
    /// unused steps, and `otherwise` is the fault for all other arrivals. `per` is `"arrival"`, `"call"`,
    /// `"connection"` or `{ period-ms = 100 }`. The table `recording` of a recorded script is for `lab replay` in the
    /// repository.
    ///
    /// # Errors
    ///
    /// Returns a [`ScriptError`] with the position of the problem for invalid TOML, an unknown word, or a value outside
    /// its range.
    pub fn from_toml(text: &str) -> Result<Self, ScriptError> {
        parse(text).map(|parsed| parsed.script)
    }

    /// Reads a script in TOML from a file.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Script::from_toml`] with the file name, or an error if the file cannot be read.
    pub fn from_file(path: impl AsRef<Path>) -> Result<Self, ScriptError> {
        let path = path.as_ref();
        let text = std::fs::read_to_string(path).map_err(|error| ScriptError::unreadable(path, &error))?;
        Self::from_toml(&text).map_err(|error| error.in_file(path))
    }
}

/// A parsed script, with the positions of its steps and its recording.
pub(crate) struct Parsed<F> {
    pub(crate) script: Script<F>,
    pub(crate) spans: Vec<Range<usize>>,
    pub(crate) recording: Option<Spanned<RawRecording>>,
}

pub(crate) fn parse<F: Fault + DeserializeOwned>(text: &str) -> Result<Parsed<F>, ScriptError> {
    let raw: RawScript<F> = toml::from_str(text)
        .map_err(|error| ScriptError::new(text, error.span().unwrap_or_default(), error.message()))?;
    let (mut steps, mut spans) = (Vec::new(), Vec::new());
    for step in raw.step {
        let span = step.span();
        let step = step.into_inner().step();
        steps.push(step.map_err(|problem| ScriptError::new(text, span.clone(), problem))?);
        spans.push(span);
    }
    let chances = raw.chances.map(|chances| {
        let span = chances.span();
        chances.into_inner().chances().map_err(|it| ScriptError::new(text, span, it))
    });
    let chances = chances.transpose()?;
    let script = Script { steps, chances, otherwise: raw.otherwise, may_remain: raw.may_remain };
    Ok(Parsed { script, spans, recording: raw.recording })
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawScript<F> {
    #[serde(default = "Vec::new")]
    step: Vec<Spanned<RawStep<F>>>,
    chances: Option<Spanned<RawChances<F>>>,
    otherwise: Option<F>,
    #[serde(default)]
    may_remain: bool,
    /// The laboratory's part of a recorded script.
    recording: Option<Spanned<RawRecording>>,
}

/// The table `recording` in TOML.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct RawRecording {
    pub(crate) destination: String,
    pub(crate) end_ms: u64,
    pub(crate) calls_ms: Vec<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawStep<F> {
    fault: F,
    #[serde(default)]
    delay_ms: u64,
    times: Option<NonZeroU32>,
    #[serde(default)]
    always: bool,
    call: Option<String>,
    connection: Option<NonZeroUsize>,
    from_ms: Option<u64>,
    to_ms: Option<u64>,
}

impl<F> RawStep<F> {
    fn step(self) -> Result<Step<F>, &'static str> {
        let mut step = Step::new(self.fault).delay(Duration::from_millis(self.delay_ms));
        step = match (self.times, self.always) {
            (Some(_), true) => return Err("`times` and `always` exclude each other"),
            (Some(times), false) => step.times(times.get()),
            (None, true) => step.always(),
            (None, false) => step,
        };
        if let Some(call) = self.call {
            step = step.call(call);
        }
        if let Some(connection) = self.connection {
            step = step.connection(connection.get());
        }
        match (self.from_ms, self.to_ms) {
            (None, None) => Ok(step),
            (from, Some(to)) if from.unwrap_or(0) < to => {
                let from = Duration::from_millis(from.unwrap_or(0));
                Ok(step.during(from..Duration::from_millis(to)))
            }
            _ => Err("`to-ms` must be given, and be greater than `from-ms`"),
        }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawChances<F> {
    seed: u64,
    per: RawPer,
    faults: Vec<RawShare<F>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawPer {
    Arrival,
    Call,
    Connection,
    PeriodMs(u64),
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
struct RawShare<F> {
    per_mille: u32,
    fault: F,
}

impl<F> RawChances<F> {
    fn chances(self) -> Result<Chances<F>, &'static str> {
        let shares = self.faults.iter().map(|share| u64::from(share.per_mille));
        if shares.sum::<u64>() > 1000 {
            return Err("the shares are more than a thousand in sum");
        }
        let per = match self.per {
            RawPer::Arrival => Per::Arrival,
            RawPer::Call => Per::Call,
            RawPer::Connection => Per::Connection,
            RawPer::PeriodMs(length) => Per::Period(Duration::from_millis(length)),
        };
        let none = Chances::new(self.seed, per);
        let add = |all: Chances<F>, share: RawShare<F>| all.fault(share.per_mille, share.fault);
        Ok(self.faults.into_iter().fold(none, add))
    }
}

/// The error for a script in TOML, with the position of the problem: the file, line, column and field, if known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    file: Option<PathBuf>,
    /// The line and the column, or `None` if the file cannot be read.
    place: Option<(usize, usize)>,
    field: Option<String>,
    problem: String,
}

impl ScriptError {
    pub(crate) fn new(text: &str, span: Range<usize>, problem: &str) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        let field = field_before(before);
        Self { file: None, place: Some((line, column)), field, problem: problem.to_owned() }
    }

    fn unreadable(file: &Path, error: &io::Error) -> Self {
        Self { file: Some(file.to_owned()), place: None, field: None, problem: error.to_string() }
    }

    fn in_file(self, file: &Path) -> Self {
        Self { file: Some(file.to_owned()), ..self }
    }

    /// Returns the file, or `None` if the script is not from a file.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Returns the line, counted from 1, or `None` if the file cannot be read.
    pub fn line(&self) -> Option<usize> {
        self.place.map(|(line, _)| line)
    }

    /// Returns the column in characters, counted from 1, or `None` if the file cannot be read.
    pub fn column(&self) -> Option<usize> {
        self.place.map(|(_, column)| column)
    }

    /// Returns the field with the invalid value, or `None` if the error does not concern a single field.
    pub fn field(&self) -> Option<&str> {
        self.field.as_deref()
    }
}

/// Returns the field whose value or list of values is incomplete at the end of this text.
fn field_before(text: &str) -> Option<String> {
    let (key, value) = text.rsplit_once('=')?;
    let value = value.trim_start();
    if !value.is_empty() && (!value.starts_with('[') || value.contains([']', '{', '\n'])) {
        return None;
    }
    let is_outside = |letter: char| !letter.is_alphanumeric() && !matches!(letter, '-' | '_' | '.' | '"');
    let name = key.trim_end().rsplit(is_outside).next()?;
    (!name.is_empty()).then(|| name.to_owned())
}

impl fmt::Display for ScriptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{}: ", file.display())?;
        }
        if let Some((line, column)) = self.place {
            write!(f, "line {line}, column {column}: ")?;
        }
        match &self.field {
            Some(field) => write!(f, "{field}: {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl Error for ScriptError {}
