//! The text of a program that prints little, for its outcome. A longer text is put together from the stored blocks when
//! it is needed (ALL-12); a short one is kept in the outcome, so that lists and waiting callers need no second read.

/// Longest text that is kept in an outcome, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;

/// What a program has printed so far, as long as it is short.
#[derive(Default)]
pub(super) struct ShortText {
    bytes: Vec<u8>,
    /// How many bytes were printed in all.
    total: u64,
}

impl ShortText {
    /// Adds a block that was printed.
    pub(super) fn push(&mut self, block: &[u8]) {
        self.total += block.len() as u64;
        if self.total <= TEXT_BYTES_MAX as u64 {
            self.bytes.extend_from_slice(block);
        } else {
            self.bytes = Vec::new();
        }
    }

    /// Returns how many bytes were printed in all.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// Returns what was printed, if it is short and all of it is text.
    pub(super) fn get(&self) -> Option<&str> {
        let is_whole = self.total == self.bytes.len() as u64;
        std::str::from_utf8(&self.bytes).ok().filter(|_| is_whole)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(blocks: &[&[u8]]) -> ShortText {
        let mut text = ShortText::default();
        blocks.iter().for_each(|block| text.push(block));
        text
    }

    #[test]
    fn short_output_is_kept_and_long_output_is_not() {
        assert_eq!(after(&["gr\u{fc}\u{df}e ".as_bytes(), b"all\n"]).get(), Some("gr\u{fc}\u{df}e all\n"));
        assert_eq!(after(&[]).get(), Some(""));
        let most = vec![b'x'; TEXT_BYTES_MAX];
        assert!(after(&[&most]).get().is_some());
        let long = after(&[&most, b"x"]);
        assert_eq!((long.get(), long.total(), long.bytes.capacity()), (None, TEXT_BYTES_MAX as u64 + 1, 0));
    }

    #[test]
    fn bytes_that_are_no_text_are_not_kept_as_one() {
        assert_eq!(after(&[b"a\xff"]).get(), None);
    }
}
