//! The search for known texts in errors without a public type.

/// The letters and digits of an error's text, in lower case.
///
/// Libraries spell the same words differently, for example "UnknownCA", "unknown ca" and "UNKNOWN_CA".
pub(super) struct Letters(Vec<u8>);

impl Letters {
    pub(super) fn of(text: &str) -> Self {
        let letters = text.bytes().filter(u8::is_ascii_alphanumeric);
        Self(letters.map(|letter| letter.to_ascii_lowercase()).collect())
    }

    /// Returns `true` if the text contains one of these, which are in lower case.
    pub(super) fn contains_any(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| {
            let Self(part) = Self::of(text);
            self.0.windows(part.len()).any(|window| window == part)
        })
    }
}
