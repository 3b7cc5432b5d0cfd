//! The description of a field: its name, type and range. Both the reader and the schema use it.

/// A field of a table.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// The meaning of the field, with the unit and the default.
    pub(crate) about: &'static str,
}

/// The type of a field.
#[derive(Debug)]
pub(crate) enum Kind {
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// The name of a profile.
    Profile,
    Flag,
    Number(Range),
    /// A whole number, or "none" for no limit.
    Count,
    /// A whole number of at least 1, or "none" for no limit.
    CountFromOne,
    /// A time.
    Duration,
    /// A duration, or "none" for no limit.
    DurationOrNone,
    /// A list of durations.
    Durations,
    /// A length: a whole number of bytes, or a string with a unit.
    Bytes,
    /// A list of these words.
    Words(&'static [&'static str]),
    /// A list of guards in their one-line form.
    Guards,
    /// A list of strings.
    Texts,
    /// A list of strings that match this pattern.
    Pairs(&'static str),
    /// A string or a list of strings.
    TextOrTexts,
    /// One of these words, or a table.
    WordOrTable(&'static [&'static str], &'static [&'static [&'static Field]]),
}

/// The range of a number.
#[derive(Debug)]
pub(crate) struct Range {
    pub(crate) least: f64,
    pub(crate) most: f64,
    /// `true` if `least` itself is not allowed.
    pub(crate) above: bool,
    /// `true` if `most` itself is not allowed.
    pub(crate) below: bool,
    /// The description of the range, or `None` for the usual "from `least` to `most`".
    pub(crate) wanted: Option<&'static str>,
    /// `true` if 0 and infinity are allowed too.
    pub(crate) or_extremes: bool,
}

impl Range {
    /// Creates the range from `least` to `most`.
    pub(crate) const fn new(least: f64, most: f64) -> Self {
        Self { least, most, above: false, below: false, wanted: None, or_extremes: false }
    }

    /// Sets the description of the range.
    pub(crate) const fn words(self, wanted: &'static str) -> Self {
        Self { wanted: Some(wanted), ..self }
    }

    pub(crate) fn contains(&self, number: f64) -> bool {
        let extreme = self.or_extremes && (number == 0.0 || number == f64::INFINITY);
        let from = if self.above { number > self.least } else { number >= self.least };
        let to = if self.below { number < self.most } else { number <= self.most };
        extreme || from && to
    }

    pub(crate) fn wanted(&self) -> String {
        let range = || format!("a number from {} to {}", self.least, self.most);
        self.wanted.map_or_else(range, str::to_owned)
    }
}

impl Field {
    pub(crate) const fn new(name: &'static str, kind: Kind, about: &'static str) -> Self {
        Self { name, kind, about }
    }
}

/// Defines a field as a constant.
macro_rules! field {
    ($($Name:ident = $name:literal: $kind:expr, $about:literal;)*) => {
        $(pub(crate) static $Name: $crate::reader::field::Field =
            $crate::reader::field::Field::new($name, $kind, $about);)*
    };
}

pub(crate) use field;

/// Returns the end of an error message, with the name that `wrong` resembles as a suggestion. The text is empty if no
/// name is similar.
///
/// ```
/// use reattempt_policy_file::reader::did_you_mean;
///
/// assert_eq!(did_you_mean("linaer", ["constant", "linear"]), "; did you mean `linear`?");
/// assert_eq!(did_you_mean("x", ["constant", "linear"]), "");
/// ```
pub fn did_you_mean<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    resembling(wrong, names).map(|name| format!("; did you mean `{name}`?")).unwrap_or_default()
}

/// Returns the name that `wrong` resembles, if any.
pub(crate) fn resembling<'a>(wrong: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Long names are not compared, because the time grows with the product of the lengths.
    let most = wrong.chars().take(41).count().div_ceil(4).min(3);
    if wrong.len() > 40 {
        return None;
    }
    let distances = names.into_iter().map(|name| (strsim::osa_distance(wrong, name), name));
    distances.filter(|(distance, _)| *distance <= most).min_by_key(|(distance, _)| *distance).map(|(_, name)| name)
}
