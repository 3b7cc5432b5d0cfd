//! A parser for structured-field lists (RFC 9651) that returns the parameters of each member.
//!
//! A list with any malformed member is rejected as a whole. So is a list with an inner list, because the members of
//! `RateLimit` are items.
//!
//! The crate `sfv` parses the same grammar. It is not used, because it adds a procedural macro and a base64 decoder for
//! values that are only skipped here.

/// The parameters of one member, in order: each name, with its value if it is a non-negative integer.
pub(super) type Integers<'a> = Vec<(&'a [u8], Option<u64>)>;

/// Returns the parameters of each list member, or `None` if the text is not a list of items.
pub(super) fn items(text: &[u8]) -> Option<Vec<Integers<'_>>> {
    let mut rest = Unread(text);
    let mut members = Vec::new();
    rest.skip(b" ");
    if rest.0.is_empty() {
        return Some(members);
    }
    loop {
        rest.bare_item()?;
        members.push(rest.parameters()?);
        // Only spaces may end the text. Tabs may also stand before a comma.
        if rest.0.iter().all(|byte| *byte == b' ') {
            return Some(members);
        }
        rest.skip(b" \t");
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
            b'-' | b'0'..=b'9' => self.number().map(|number| match number {
                Number::Unsigned(integer) => Some(integer),
                Number::Negative | Number::Decimal => None,
            }),
            b'"' => self.string(),
            b'*' | b'A'..=b'Z' | b'a'..=b'z' => {
                self.take_while(is_of_token);
                Some(None)
            }
            b':' => self.bytes(),
            b'%' => self.display_string(),
            b'?' => {
                self.take(b'?')?;
                self.take(b'0').or_else(|| self.take(b'1')).map(|()| None)
            }
            b'@' => {
                self.take(b'@')?;
                self.number().filter(|number| *number != Number::Decimal).map(|_| None)
            }
            _ => None,
        }
    }

    /// RFC 9651 §4.2.4
    fn number(&mut self) -> Option<Number> {
        let negative = self.take(b'-').is_some();
        let whole = self.take_while(|byte| byte.is_ascii_digit());
        if self.take(b'.').is_some() {
            let fraction = self.take_while(|byte| byte.is_ascii_digit());
            let fits = (1..=12).contains(&whole.len()) && (1..=3).contains(&fraction.len());
            return fits.then_some(Number::Decimal);
        }
        let integer = super::number::digits(whole).filter(|_| whole.len() <= 15)?;
        // `-0` is 0.
        Some(if negative && integer > 0 { Number::Negative } else { Number::Unsigned(integer) })
    }

    /// RFC 9651 §4.2.7. Padding may be missing, and the unused bits of the last character may have any value.
    fn bytes(&mut self) -> Option<Option<u64>> {
        self.take(b':')?;
        let content = self.take_while(|byte| byte.is_ascii_alphanumeric() || b"+/".contains(&byte)).len();
        let padding = self.take_while(|byte| byte == b'=').len();
        self.take(b':')?;
        let is_base64 = match padding {
            0 => content % 4 != 1,
            1 | 2 => (content + padding).is_multiple_of(4),
            _ => false,
        };
        is_base64.then_some(None)
    }

    /// RFC 9651 §4.2.10. The decoded text must be UTF-8.
    fn display_string(&mut self) -> Option<Option<u64>> {
        self.take(b'%')?;
        self.take(b'"')?;
        let mut decoded = Vec::new();
        loop {
            decoded.extend_from_slice(self.take_while(|byte| matches!(byte, b' '..=b'~') && !b"\"%".contains(&byte)));
            if self.take(b'"').is_some() {
                return std::str::from_utf8(&decoded).is_ok().then_some(None);
            }
            self.take(b'%')?;
            decoded.push(self.lower_hex()? << 4 | self.lower_hex()?);
        }
    }

    /// Consumes a hexadecimal digit in lower case.
    fn lower_hex(&mut self) -> Option<u8> {
        let (digit, rest) = self.0.split_first()?;
        self.0 = rest;
        match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        }
    }

    /// RFC 9651 §4.2.5
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

#[derive(PartialEq)]
enum Number {
    Unsigned(u64),
    Negative,
    Decimal,
}

fn is_of_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:/".contains(&byte)
}
