//! The state of a client's parts at one moment, as plain data: the settings in force, the tokens left, the breakers'
//! states.
//!
//! A part of a client implements [`Inspect`]. Its [`Part`] is text for people through `Display`, and JSON through
//! serde's `Serialize` (feature `serde`). All parts have this one form, so a page can show parts that it does not know.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt::{self, Write};
use core::time::Duration;

/// A part of a client whose state can be read while calls are in flight.
///
/// The reader is usually an operator, so a part shows no credentials. `reattempt::snapshot::Snapshot` also removes them
/// from all names and texts.
///
/// ```
/// use std::time::Duration;
/// # mod reattempt { pub use reattempt_core::snapshot; }
/// use reattempt::snapshot::{Inspect, Part};
///
/// struct Quota { left: u32 }
///
/// impl Inspect for Quota {
///     fn inspect(&self, _now: Duration) -> Part {
///         Part::new("quota", "").field("left", self.left).field("renewed_in", Duration::from_secs(5))
///     }
/// }
///
/// let part = Quota { left: 8 }.inspect(Duration::ZERO).named("orders");
/// assert_eq!(part.to_string(), "quota orders: left 8, renewed_in 5s\n");
/// ```
pub trait Inspect {
    /// Returns the state at `now`, on the clock of budgets and guards. It must not block calls for longer than a call
    /// itself does.
    fn inspect(&self, now: Duration) -> Part;
}

impl<T: Inspect + ?Sized> Inspect for Arc<T> {
    fn inspect(&self, now: Duration) -> Part {
        (**self).inspect(now)
    }
}

/// A pair of guards is one part, with the two guards in it.
impl<A: Inspect, B: Inspect> Inspect for (A, B) {
    fn inspect(&self, now: Duration) -> Part {
        Part::new("guards", "").parts([self.0.inspect(now), self.1.inspect(now)])
    }
}

/// The state of a part of a client at one moment.
///
/// `Display` writes a line for the part, and a line for each part in it, indented by two spaces. In JSON, a part is an
/// object with its `kind`, its `name`, its fields, and the list `parts` unless that is empty. A time is in seconds, and
/// its field's name then ends with `_seconds`.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    kind: &'static str,
    name: String,
    fields: Vec<(&'static str, Value)>,
    parts: Vec<Part>,
}

/// The value of a [`Part`]'s field.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A text.
    Text(String),
    /// A setting that is on or off.
    Flag(bool),
    /// A whole number.
    Count(u64),
    /// Any other number, in JSON `null` if it is not finite.
    Number(f64),
    /// A time.
    Time(Duration),
}

impl Part {
    /// Creates a part without fields. `kind` is a word such as `budget`; `name` may be empty.
    pub fn new(kind: &'static str, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), fields: Vec::new(), parts: Vec::new() }
    }

    /// Sets the name, which tells parts of one kind apart.
    #[must_use = "the name is in the part that is returned"]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    /// Adds a field. Its name is a word such as `open_time`, but not `kind`, `name` or `parts`.
    #[must_use = "the field is in the part that is returned"]
    pub fn field(mut self, name: &'static str, value: impl Into<Value>) -> Self {
        self.fields.push((name, value.into()));
        self
    }

    /// Adds a field if it has a value.
    #[must_use = "the field is in the part that is returned"]
    pub fn field_if(self, name: &'static str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    /// Adds the parts of this part, such as a budget's destinations.
    #[must_use = "the parts are in the part that is returned"]
    pub fn parts(mut self, parts: impl IntoIterator<Item = Self>) -> Self {
        self.parts.extend(parts);
        self
    }

    /// Returns the kind.
    pub fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns the name, which may be empty.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value of a field.
    pub fn get(&self, field: &str) -> Option<&Value> {
        self.fields.iter().find(|(name, _)| *name == field).map(|(_, value)| value)
    }

    /// Returns the parts of this part.
    pub fn get_parts(&self) -> &[Self] {
        &self.parts
    }

    /// Replaces each name and each text, also in the parts of this part.
    #[must_use = "the texts are in the part that is returned"]
    pub fn map_texts(mut self, map: &impl Fn(&str) -> String) -> Self {
        self.name = map(&self.name);
        for (_, value) in &mut self.fields {
            if let Value::Text(text) = value {
                *text = map(text);
            }
        }
        self.parts = self.parts.into_iter().map(|part| part.map_texts(map)).collect();
        self
    }

    fn write(&self, depth: usize, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:indent$}{}", "", self.kind, indent = 2 * depth)?;
        if !self.name.is_empty() {
            write!(f, " {}", OneLine(&self.name))?;
        }
        for (number, (name, value)) in self.fields.iter().enumerate() {
            let before = if number == 0 { ":" } else { "," };
            write!(f, "{before} {name} {value}")?;
        }
        f.write_char('\n')?;
        self.parts.iter().try_for_each(|part| part.write(depth + 1, f))
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write(0, f)
    }
}

/// A time is rounded to milliseconds, or below a second to microseconds. A number has at most three decimals.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => OneLine(text).fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Number(number) => {
                let text = format!("{number:.3}");
                let is_decimal = text.contains('.');
                f.write_str(if is_decimal { text.trim_end_matches('0').trim_end_matches('.') } else { &text })
            }
            Self::Time(Duration::ZERO) => f.write_str("0s"),
            Self::Time(time) => {
                let unit = if time.as_secs() > 0 { 1_000_000 } else { 1_000 };
                write!(f, "{:?}", Duration::new(time.as_secs(), time.subsec_nanos() / unit * unit))
            }
        }
    }
}

/// The output is that of the value alone.
impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => text.fmt(f),
            Self::Flag(flag) => flag.fmt(f),
            Self::Count(count) => count.fmt(f),
            Self::Number(number) => number.fmt(f),
            Self::Time(time) => time.fmt(f),
        }
    }
}

/// A text without control characters, so that a name cannot forge a line.
struct OneLine<'a>(&'a str);

impl fmt::Display for OneLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .chars()
            .try_for_each(|c| if c.is_control() { write!(f, "{}", c.escape_default()) } else { f.write_char(c) })
    }
}

macro_rules! from {
    ($($from:ty => $variant:ident($value:ident => $into:expr);)*) => {$(
        impl From<$from> for Value {
            fn from($value: $from) -> Self {
                Self::$variant($into)
            }
        }
    )*};
}

from! {
    &str => Text(text => text.to_owned());
    String => Text(text => text);
    bool => Flag(flag => flag);
    u32 => Count(count => count.into());
    u64 => Count(count => count);
    usize => Count(count => count as u64);
    f64 => Number(number => number);
    Duration => Time(time => time);
}

#[cfg(feature = "serde")]
mod json {
    use alloc::borrow::Cow;
    use alloc::format;

    use serde_core::ser::{Serialize, SerializeMap, Serializer};

    use super::{Part, Value};

    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    impl Serialize for Part {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            let mut map = to.serialize_map(None)?;
            map.serialize_entry("kind", self.kind)?;
            map.serialize_entry("name", &self.name)?;
            for (name, value) in &self.fields {
                let name = match value {
                    Value::Time(_) => Cow::Owned(format!("{name}_seconds")),
                    _ => Cow::Borrowed(*name),
                };
                map.serialize_entry(&*name, value)?;
            }
            if !self.parts.is_empty() {
                map.serialize_entry("parts", &self.parts)?;
            }
            map.end()
        }
    }

    #[cfg_attr(docsrs, doc(cfg(feature = "serde")))]
    impl Serialize for Value {
        fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
            match self {
                Self::Text(text) => to.serialize_str(text),
                Self::Flag(flag) => to.serialize_bool(*flag),
                Self::Count(count) => to.serialize_u64(*count),
                Self::Number(number) => to.serialize_f64(*number),
                Self::Time(time) => to.serialize_f64(time.as_secs_f64()),
            }
        }
    }
}
