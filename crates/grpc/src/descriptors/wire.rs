//! A reader of protobuf's wire format, for bytes of any origin.
//!
//! It allocates nothing but the numbers of open groups, and has no recursion.

use super::error::{DescriptorSetError, Malformed};

/// The most nested groups in a field that is skipped. protobuf's own limit on nested messages is 100, too.
const MOST_GROUPS: usize = 100;

/// The fields of one message, in the order of the bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireReader<'a> {
    rest: &'a [u8],
    /// The position of `rest` in the whole input, for errors.
    position: usize,
}

/// A field of a message.
#[derive(Debug, Clone, Copy)]
pub(super) struct WireField<'a> {
    pub(super) number: u32,
    /// The position of the field in the whole input.
    pub(super) position: usize,
    pub(super) value: WireValue<'a>,
}

/// The value of a field, as far as descriptors have it.
#[derive(Debug, Clone, Copy)]
pub(super) enum WireValue<'a> {
    Number(u64),
    /// A string, or a message.
    Bytes(WireReader<'a>),
    /// A value of another kind, which is skipped.
    Other,
}

impl<'a> WireReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, position: 0 }
    }

    /// Reads the next field. Returns `None` at the end of the message.
    pub(super) fn next_field(&mut self) -> Result<Option<WireField<'a>>, DescriptorSetError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let position = self.position;
        let (number, kind) = self.tag()?;
        let value = match kind {
            0 => WireValue::Number(self.varint()?),
            2 => WireValue::Bytes(self.bytes()?),
            3 => self.skip_group(number).map(|()| WireValue::Other)?,
            _ => self.skip(kind, position).map(|()| WireValue::Other)?,
        };
        Ok(Some(WireField { number, position, value }))
    }

    /// Returns the bytes as text.
    pub(super) fn text(&self) -> Result<&'a str, DescriptorSetError> {
        std::str::from_utf8(self.rest).map_err(|_| Malformed::Text.at(self.position))
    }

    /// Reads the number and the kind of the next field.
    fn tag(&mut self) -> Result<(u32, u8), DescriptorSetError> {
        let position = self.position;
        let tag = u32::try_from(self.varint()?).map_err(|_| Malformed::Tag.at(position))?;
        match tag >> 3 {
            0 => Err(Malformed::Tag.at(position)),
            number => Ok((number, (tag & 7) as u8)),
        }
    }

    fn varint(&mut self) -> Result<u64, DescriptorSetError> {
        let position = self.position;
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?.rest.first().copied().unwrap_or_default();
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break; // more than 64 bits
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Malformed::Varint.at(position))
    }

    /// Reads a length, and returns the bytes of this length.
    fn bytes(&mut self) -> Result<Self, DescriptorSetError> {
        let position = self.position;
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed::Truncated.at(position))?;
        self.take(length)
    }

    fn take(&mut self, length: usize) -> Result<Self, DescriptorSetError> {
        let Some((taken, rest)) = self.rest.split_at_checked(length) else {
            return Err(Malformed::Truncated.at(self.position));
        };
        let taken = Self { rest: taken, position: self.position };
        (self.rest, self.position) = (rest, self.position.saturating_add(length));
        Ok(taken)
    }

    /// Skips a value that is not a group.
    fn skip(&mut self, kind: u8, position: usize) -> Result<(), DescriptorSetError> {
        match kind {
            0 => self.varint().map(drop),
            1 => self.take(8).map(drop),
            2 => self.bytes().map(drop),
            5 => self.take(4).map(drop),
            _ => Err(Malformed::Tag.at(position)),
        }
    }

    /// Skips a group, whose start was read. Only custom options have groups.
    fn skip_group(&mut self, number: u32) -> Result<(), DescriptorSetError> {
        let mut open = vec![number];
        while let Some(&innermost) = open.last() {
            let position = self.position;
            match self.tag()? {
                (number, 3) if open.len() < MOST_GROUPS => open.push(number),
                (number, 4) if number == innermost => drop(open.pop()),
                (_, 3 | 4) => return Err(Malformed::Group.at(position)),
                (_, kind) => self.skip(kind, position)?,
            }
        }
        Ok(())
    }
}
