//! An error's source chain, as an iterator and as one line of text.

use std::error::Error;
use std::fmt::{self, Write};

use super::redact::{ends_word, redacted};

/// An equivalent of tower's `BoxError`.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// Returns the error and its causes, outermost first.
pub fn causes<'a>(error: &'a (dyn Error + 'static)) -> impl Iterator<Item = &'a (dyn Error + 'static)> {
    std::iter::successors(Some(error), |&error| error.source())
}

/// The maximum length of an error text, in bytes. Peers control parts of some texts: HTTP/2 debug data has up to 64
/// KiB, and every call on a connection gets it.
const LONGEST: usize = 1024;

/// Returns the error and its causes in one line, without credentials, truncated to 1 KiB.
pub fn chain(error: &(dyn Error + 'static)) -> Box<str> {
    let mut text = BoundedText::of(error);
    for cause in causes(error).skip(1) {
        let cause = BoundedText::of(cause);
        if text.is_cut {
            break;
        }
        // Many errors repeat their cause in their own text.
        if !text.text.ends_with(&cause.text) {
            text.add(format_args!(": {}", cause.text));
        }
    }
    redacted(&text.text).into()
}

/// A text that is truncated to [`LONGEST`].
#[derive(Default)]
struct BoundedText {
    text: String,
    is_cut: bool,
}

impl BoundedText {
    fn of(error: &(dyn Error + 'static)) -> Self {
        let mut text = Self::default();
        text.add(format_args!("{error}"));
        text
    }

    fn add(&mut self, more: fmt::Arguments<'_>) {
        // The write returns an error once the text has been truncated.
        let _ = self.write_fmt(more);
    }
}

impl Write for BoundedText {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = LONGEST.saturating_sub(self.text.len());
        if part.len() <= room {
            self.text.push_str(part);
            return Ok(());
        }
        let end = (0..=room).rev().find(|end| part.is_char_boundary(*end));
        self.text.push_str(&part[..end.unwrap_or(0)]);
        // A truncated URL may end in credentials that the redaction cannot recognise.
        let words = self.text.trim_end_matches(|c| !ends_word(c)).len();
        self.text.truncate(words);
        self.text.push('…');
        self.is_cut = true;
        Err(fmt::Error)
    }
}
