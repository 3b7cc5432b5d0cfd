//! The message bytes in a gRPC body, without the five-byte prefix of each message.

/// A counter of message bytes, independent of frame boundaries.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Messages {
    /// The message bytes counted so far.
    pub(super) bytes: u64,
    /// The remaining bytes of the current message.
    left: usize,
    /// The part of the current prefix that was read: its number of bytes, and the length that they encode.
    prefix: (u8, u32),
}

impl Messages {
    /// Counts the next bytes of the body.
    pub(super) fn read(&mut self, mut data: &[u8]) {
        while let [byte, rest @ ..] = data {
            if self.left > 0 {
                let here = self.left.min(data.len());
                self.left -= here;
                self.bytes = self.bytes.saturating_add(u64::try_from(here).unwrap_or(u64::MAX));
                data = &data[here..];
                continue;
            }
            let (read, length) = self.prefix;
            // The first byte is the compression flag, which is shifted out again.
            let length = length << 8 | u32::from(*byte);
            self.prefix = (read + 1, length);
            if read == 4 {
                self.prefix = (0, 0);
                self.left = usize::try_from(length).unwrap_or(usize::MAX);
            }
            data = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // OBS-2
    #[test]
    fn only_messages_count_however_cut() {
        let long = [7; 300];
        let body = [&[0, 0, 0, 0, 3][..], b"one", &[1, 0, 0, 0, 0], &[0, 0, 0, 1, 44], &long];
        let body = body.concat();
        for size in 1..=body.len() {
            let mut messages = Messages::default();
            body.chunks(size).for_each(|chunk| messages.read(chunk));
            assert_eq!(messages.bytes, 303, "in chunks of {size}");
        }
    }

    // OBS-2
    #[test]
    fn start_of_broken_message_counts() {
        let mut messages = Messages::default();
        messages.read(&[1, 255, 255, 255, 255, 1, 2, 3]);
        assert_eq!(messages.bytes, 3);
    }
}
