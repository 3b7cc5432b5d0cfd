//! A document as values with line numbers, regardless of the format.

use std::fmt;

/// A value, and the line on which it begins.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Debug)]
pub(super) enum Value {
    Text(String),
    /// A whole number in decimal digits.
    Whole(String),
    /// Any other number.
    Number(String),
    Flag(bool),
    Date,
    #[cfg(feature = "json")]
    Null,
    List(Vec<Node>),
    Table(Table),
}

/// The fields of a table, in document order. A repeated field is reported.
pub(super) type Table = Vec<(String, Node)>;

/// The maximum number of characters of a string that a problem shows.
const MOST_SHOWN: usize = 64;

/// The output can be used in a sentence.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{}", quoted(text)),
            Self::Whole(number) | Self::Number(number) => f.write_str(number),
            Self::Flag(flag) => write!(f, "{flag}"),
            Self::Date => f.write_str("a date"),
            #[cfg(feature = "json")]
            Self::Null => f.write_str("null"),
            Self::List(_) => f.write_str("a list"),
            Self::Table(_) => f.write_str("a table"),
        }
    }
}

/// Returns a string in quotes, truncated if it is long. The part before an `@` is omitted, because it may contain
/// credentials.
pub(super) fn quoted(text: &str) -> String {
    if let Some((user, rest)) = text.rsplit_once('@') {
        let scheme = user.split_once("://").map(|(scheme, _)| format!("{scheme}://")).unwrap_or_default();
        return quoted_whole(&format!("{scheme}…@{rest}"));
    }
    quoted_whole(text)
}

fn quoted_whole(text: &str) -> String {
    match text.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// The positions at which the lines of a text start.
pub(super) struct Lines(Vec<usize>);

impl Lines {
    pub(super) fn of(text: &str) -> Self {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Self(breaks.map(|(place, _)| place + 1).collect())
    }

    /// Returns the line number of a byte, from 1.
    pub(super) fn line(&self, place: usize) -> usize {
        1 + self.0.partition_point(|start| *start <= place)
    }
}

/// Returns a key for use in a path. A plain word is unchanged; any other key is quoted and truncated.
pub(super) fn plain(key: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    match (1..=MOST_SHOWN).contains(&key.len()) && key.bytes().all(is_plain) {
        true => key.to_owned(),
        false => quoted(key),
    }
}
