//! A parser for structured-field lists (RFC 9651) that returns the parameters of each member.
//!
//! A list with any malformed member is rejected as a whole.

/// The parameters of one member, in order: each name, with its value if it is a non-negative integer.
pub(super) type Integers<'a> = Vec<(&'a [u8], Option<u64>)>;

/// Returns the parameters of each list member, or `None` if the text is not a list of items.
pub(super) fn items(text: &[u8]) -> Option<Vec<Integers<'_>>> {
    let mut rest = Unread(text.trim_ascii());
    let mut members = Vec::new();
    loop {
        rest.bare_item()?;
        members.push(rest.parameters()?);
        rest.skip(b" \t");
        if rest.0.is_empty() {
            return Some(members);
        }
        rest.take(b',')?;
        rest.skip(b" \t");
    }
}

/// The remaining input.
struct Unread<'a>(&'a [u8]);

impl<'a> Unread<'a> {
    fn take(&mut self, byte: u8) -> Option<()> {
        self.0 = self.0.strip_prefix(&[byte])?;
        Some(())
    }

    fn skip(&mut self, bytes: &[u8]) {
        self.take_while(|byte| bytes.contains(&byte));
    }

    /// Consumes the leading bytes that `belongs` accepts.
    fn take_while(&mut self, belongs: impl Fn(u8) -> bool) -> &'a [u8] {
        let end = self.0.iter().position(|byte| !belongs(*byte)).unwrap_or(self.0.len());
        let (taken, rest) = self.0.split_at(end);
        self.0 = rest;
        taken
    }

    /// RFC 9651 §4.2.3.2
    fn parameters(&mut self) -> Option<Integers<'a>> {
        let mut parameters = Vec::new();
        while self.take(b';').is_some() {
            self.skip(b" ");
            let first = self.0.first()?;
            if !(first.is_ascii_lowercase() || *first == b'*') {
                return None;
            }
            let key =
                self.take_while(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_-.*".contains(&byte));
            let value = match self.take(b'=') {
                Some(()) => self.bare_item()?,
                None => None,
            };
            parameters.push((key, value));
        }
        Some(parameters)
    }

    /// RFC 9651 §4.2.3.1. Returns the value of a non-negative integer.
    fn bare_item(&mut self) -> Option<Option<u64>> {
        match *self.0.first()? {
            b'-' | b'0'..=b'9' => self.number(),
            b'"' => self.string(),
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                self.take_while(is_of_token);
                Some(None)
            }
            b':' => {
                self.take(b':')?;
                self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte));
                self.take(b':').map(|()| None)
            }
            b'?' => {
                self.take(b'?')?;
                self.take(b'0').or_else(|| self.take(b'1')).map(|()| None)
            }
            b'@' => {
                self.take(b'@')?;
                self.number().map(|_| None)
            }
            _ => None,
        }
    }

    fn number(&mut self) -> Option<Option<u64>> {
        let negative = self.take(b'-').is_some();
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        if self.take(b'.').is_some() {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            let fits = (1..=12).contains(&whole.len()) && (1..=3).contains(&fraction.len());
            return fits.then_some(None);
        }
        let integer = super::number::digits(whole).filter(|_| whole.len() <= 15)?;
        Some((!negative).then_some(integer))
    }

    fn string(&mut self) -> Option<Option<u64>> {
        self.take(b'"')?;
        loop {
            self.take_while(|byte| matches!(byte, b' '..=b'~') && !b"\"\\".contains(&byte));
            if self.take(b'"').is_some() {
                return Some(None);
            }
            self.take(b'\\')?;
            self.take(b'"').or_else(|| self.take(b'\\'))?;
        }
    }
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
}
