//! The end of a long output, for an outcome: everything is stored block by block as it comes, and the last MiB is kept
//! in memory.

use std::borrow::Cow;
use std::collections::VecDeque;

use crosspoint_contracts::content::Body;
use crosspoint_contracts::reply::Success;
use serde::Serialize;

/// Longest text of an outcome, in bytes.
const TAIL_BYTES_MAX: usize = 1 << 20;

/// The end of what a program has printed so far.
#[derive(Default)]
pub(super) struct Tail {
    bytes: VecDeque<u8>,
    total: u64,
}

#[derive(Serialize)]
struct Outputs<'a> {
    output: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_truncated: Option<Truncated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_encoding: Option<&'static str>,
}

/// Present when the text is not all that was printed.
#[derive(Serialize)]
struct Truncated {
    /// How many bytes were printed in all.
    bytes: u64,
    /// Where in them the text begins.
    from: u64,
    /// Where the rest is.
    rest: &'static str,
}

impl Tail {
    /// Adds a block that was printed.
    pub(super) fn push(&mut self, block: &[u8]) {
        self.total += block.len() as u64;
        let new = &block[block.len().saturating_sub(TAIL_BYTES_MAX)..];
        let over = (self.bytes.len() + new.len()).saturating_sub(TAIL_BYTES_MAX);
        self.bytes.drain(..over.min(self.bytes.len()));
        self.bytes.extend(new);
    }

    /// Returns `{"output": text}` (ALL-8). The text begins with a whole character. Bytes that are no text are shown as
    /// U+FFFD each, and `output_encoding` says so: what was printed is in the output events, byte for byte.
    pub(super) fn success(&mut self) -> Success {
        let cut = self.total > self.bytes.len() as u64;
        let bytes = self.bytes.make_contiguous();
        let is_middle = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
        let skipped = if cut { bytes.iter().take(3).take_while(is_middle).count() } else { 0 };
        let text = String::from_utf8_lossy(&bytes[skipped..]);
        let from = self.total - bytes.len() as u64 + skipped as u64;
        let truncated = Truncated { bytes: self.total, from, rest: "the output events of this job" };
        let output_encoding = matches!(text, Cow::Owned(_)).then_some("lossy");
        if !cut && output_encoding.is_none() {
            return Success::printed(&text);
        }
        let outputs = Body::of(&Outputs { output: &text, output_truncated: cut.then_some(truncated), output_encoding });
        Success { outputs: Some(outputs), ..Success::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outputs(tail: &mut Tail) -> String {
        tail.success().outputs.expect("there are some").get().to_owned()
    }

    #[test]
    fn short_output_is_whole() {
        let mut tail = Tail::default();
        tail.push("grüße ".as_bytes());
        tail.push(b"all\n");
        assert_eq!(outputs(&mut tail), r#"{"output":"grüße all\n"}"#);
    }

    #[test]
    fn what_is_no_text_is_shown_as_far_as_it_can_be_and_said_to_be_so() {
        let mut tail = Tail::default();
        tail.push(b"a\xff\xfeb");
        assert_eq!(outputs(&mut tail), "{\"output\":\"a\u{fffd}\u{fffd}b\",\"output_encoding\":\"lossy\"}");
    }

    #[test]
    fn long_output_keeps_its_end_from_a_whole_character_on_and_says_where_the_rest_is() {
        let mut tail = Tail::default();
        // Two bytes a character, and the limit falls in the middle of one.
        tail.push(&"ü".repeat(TAIL_BYTES_MAX).into_bytes());
        tail.push(b"x");
        let outputs: serde_json::Value = serde_json::from_str(&outputs(&mut tail)).expect("it is JSON");
        let text = outputs["output"].as_str().expect("a text");
        assert!(text.starts_with('ü') && text.ends_with("üx") && !text.contains('\u{fffd}'));
        assert_eq!(text.len(), TAIL_BYTES_MAX - 1);
        assert_eq!(outputs["output_truncated"]["bytes"], 2 * TAIL_BYTES_MAX as u64 + 1);
        assert_eq!(outputs["output_truncated"]["from"], TAIL_BYTES_MAX as u64 + 2);
    }
}
