//! A JSON document as nodes, each with its text and its path.
//!
//! A node remains text until its value is needed, and is parsed one level at a time. Numbers thus keep their digits,
//! and duplicate keys are detected. Unknown fields are skipped without recursion, however deeply they are nested. The
//! known fields are not nested deeply, so each byte is read only a few times.

use std::fmt;

use serde_core::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// The path to a node, such as `methodConfig[0].timeout`. It is empty for the document itself.
#[derive(Debug, Clone, Copy)]
pub(super) enum Path<'p> {
    Document,
    Key(&'p Path<'p>, &'p str),
    Index(&'p Path<'p>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Path::Document => Ok(()),
            Path::Index(before, index) => write!(f, "{before}[{index}]"),
            Path::Key(before, key) if !is_plain(key) => {
                write!(f, "{before}[{}]", excerpt(&format!("{key:?}")))
            }
            Path::Key(Path::Document, key) => f.write_str(key),
            Path::Key(before, key) => write!(f, "{before}.{key}"),
        }
    }
}

/// Returns `true` if a key needs no quotes in a path.
fn is_plain(key: &str) -> bool {
    (1..=MOST_SHOWN).contains(&key.len())
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

/// The maximum number of characters from the document that an error shows.
const MOST_SHOWN: usize = 64;

/// Returns the start of `text`, on one line.
fn excerpt(text: &str) -> String {
    let line = |c: char| if c.is_control() { ' ' } else { c };
    let mut excerpt: String = text.chars().take(MOST_SHOWN).map(line).collect();
    if text.chars().nth(MOST_SHOWN).is_some() {
        excerpt.push('…');
    }
    excerpt
}

/// A value in the document, with its path.
#[derive(Debug, Clone, Copy)]
pub(super) struct Node<'d, 'p> {
    pub(super) raw: &'d RawValue,
    pub(super) path: Path<'p>,
}

impl<'d> Node<'d, '_> {
    pub(super) fn is_null(&self) -> bool {
        self.raw.get() == "null"
    }

    pub(super) fn boolean(&self) -> Option<bool> {
        serde_json::from_str(self.raw.get()).ok()
    }

    /// Returns the text of a number. If `quoted`, a number in a string is accepted too.
    pub(super) fn number(&self, quoted: bool) -> Option<String> {
        let text = self.raw.get();
        if quoted && text.starts_with('"') {
            let inner = self.text()?;
            let raw: &RawValue = serde_json::from_str(&inner).ok()?;
            return (is_number(&inner) && raw.get() == inner).then_some(inner);
        }
        is_number(text).then(|| text.to_owned())
    }

    pub(super) fn text(&self) -> Option<String> {
        serde_json::from_str(self.raw.get()).ok()
    }

    pub(super) fn items(&self) -> Option<Vec<&'d RawValue>> {
        serde_json::from_str(self.raw.get()).ok()
    }

    pub(super) fn members(&self) -> Option<Vec<(String, &'d RawValue)>> {
        serde_json::from_str(self.raw.get()).ok().map(|Members(members)| members)
    }

    /// Returns the start of the value, on one line.
    pub(super) fn excerpt(&self) -> String {
        excerpt(self.raw.get())
    }
}

/// Returns `true` if a JSON value is a number, judging by its first character.
fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

/// The members of an object in document order, including duplicates.
struct Members<'d>(Vec<(String, &'d RawValue)>);

impl<'d> Deserialize<'d> for Members<'d> {
    fn deserialize<D: Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        struct Collect;

        impl<'d> Visitor<'d> for Collect {
            type Value = Members<'d>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'d>>(self, mut map: A) -> Result<Members<'d>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}
