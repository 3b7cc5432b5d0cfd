//! Reads values from bytes. The bytes are random in the property tests and chosen by libFuzzer in the
//! fuzz targets.

/// The bytes that were not read yet. Past their end every byte is 0.
pub(crate) struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub(crate) fn byte(&mut self) -> u8 {
        let Some((first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        *first
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u8) -> u8 {
        self.byte() % end
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.below(2) == 1
    }

    pub(crate) fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[usize::from(self.byte()) % all.len()]
    }

    /// Returns a text of up to seven parts. Each is one of `pieces` or a single byte.
    pub(crate) fn text(&mut self, pieces: &[&str]) -> Vec<u8> {
        let mut text = Vec::new();
        for _ in 0..self.below(8) {
            match pieces.get(usize::from(self.byte() / 2)) {
                Some(piece) => text.extend_from_slice(piece.as_bytes()),
                None => text.push(self.byte()),
            }
        }
        text
    }
}
