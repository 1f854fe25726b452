//! What the outcome of a program will hold, gathered while it runs, in bounded memory.
//!
//! The outputs are what the program gave last with an `@crosspoint ` line, and what it printed is step output then. If
//! it gave none, the outputs are the last line it printed that is a JSON object, and all that it printed is the text
//! beside them, unless it printed nothing else. If there is no such line, the text is all there is (ALL-12).

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::Tape;
use crosspoint_contracts::outcome::Text;
use crosspoint_contracts::printed::Printed;
use crosspoint_contracts::reply::{Given, Success};

use super::lines::{line_end, position};
use super::short_text::ShortText;

/// Longest line that is considered as outputs, in bytes.
const OBJECT_BYTES_MAX: usize = 1 << 20;

/// Limit of all artifacts together, in bytes.
pub(super) const ARTIFACTS_BYTES_MAX: usize = 16 << 20;

#[derive(Default)]
pub(super) struct Gathered {
    outputs: Option<Body>,
    /// The last line that was an object.
    object: Option<Body>,
    line: Line,
    artifacts: Vec<Body>,
    artifacts_bytes: usize,
    text: ShortText,
    /// How many bytes were printed that are not blank. It is not counted further than the longest object goes.
    visible_bytes: usize,
}

/// The line that is being printed, as far as it could be an object.
#[derive(Default)]
enum Line {
    /// Nothing of the line has come yet.
    #[default]
    Start,
    /// The line is nothing but blanks so far, or has begun like an object.
    Object(Vec<u8>),
    /// The line is no object.
    Other,
}

/// The artifacts are longer than they may be.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMuch;

impl Gathered {
    pub(super) fn outputs(&mut self, outputs: Body) {
        self.outputs = Some(outputs);
    }

    pub(super) fn artifact(&mut self, artifact: Body) -> Result<(), TooMuch> {
        self.artifacts_bytes += artifact.bytes().len();
        if self.artifacts_bytes > ARTIFACTS_BYTES_MAX {
            return Err(TooMuch);
        }
        self.artifacts.push(artifact);
        Ok(())
    }

    /// Takes a block of output. Most lines are skipped at once: only those that begin with a brace are looked at.
    pub(super) fn output(&mut self, block: &Bytes) {
        self.text.push(block);
        if self.visible_bytes <= OBJECT_BYTES_MAX {
            self.visible_bytes += visible_bytes(block);
        }
        let mut rest: &[u8] = block;
        while !rest.is_empty() {
            rest = match &mut self.line {
                Line::Start => self.begin(rest),
                Line::Other => match line_end(rest) {
                    Some(end) => {
                        self.line = Line::Start;
                        &rest[end..]
                    }
                    None => &[],
                },
                Line::Object(line) => {
                    let end = line_end(rest);
                    let part = &rest[..end.unwrap_or(rest.len())];
                    let fits = line.len() + part.len() <= OBJECT_BYTES_MAX && begins_like_an_object(line, part);
                    match (fits, end) {
                        (true, _) => line.extend_from_slice(part),
                        (false, _) => self.line = Line::Other,
                    }
                    if end.is_some() {
                        self.end_line();
                    }
                    &rest[part.len()..]
                }
            };
        }
    }

    /// At the start of a line: skips to the next line that could be an object, and returns the rest from there.
    fn begin<'r>(&mut self, rest: &'r [u8]) -> &'r [u8] {
        let line_start = |at: usize| rest[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        let Some(brace) = position(rest, b'{') else {
            let last = &rest[line_start(rest.len())..];
            self.line = match last {
                [] => Line::Start,
                last if last.trim_ascii().is_empty() && last.len() <= OBJECT_BYTES_MAX => Line::Object(last.to_vec()),
                _ => Line::Other,
            };
            return &[];
        };
        let start = line_start(brace);
        let blank = rest[start..brace].trim_ascii().is_empty();
        self.line = if blank { Line::Object(Vec::new()) } else { Line::Other };
        &rest[if blank { start } else { brace }..]
    }

    fn end_line(&mut self) {
        if let Line::Object(line) = std::mem::take(&mut self.line)
            && line.trim_ascii().ends_with(b"}")
            && is_readable(line.trim_ascii())
        {
            self.object = Some(Body::trusted(line.trim_ascii().to_vec()));
        }
    }

    /// Returns what a program that failed gave with an `@crosspoint ` line. What it printed stays its output.
    pub(super) fn given(&mut self) -> Given {
        Given { outputs: self.outputs.take(), artifacts: self.listed(), ..Given::default() }
    }

    fn listed(&self) -> Option<Body> {
        let artifacts: Vec<&str> = self.artifacts.iter().map(Body::get).collect();
        (!artifacts.is_empty()).then(|| Body::trusted(format!("[{}]", artifacts.join(","))))
    }

    /// Returns the outcome of a program that succeeded. What it printed was stored as output of this attempt, from this
    /// offset on.
    pub(super) fn success(mut self, attempt: u32, offset: u64) -> Success {
        // The last line may lack its line break.
        self.end_line();
        let artifacts = self.listed();
        let printed = Text::Printed(Printed { attempt, start: offset, end: offset + self.text.total() });
        let is_alone = |object: &Body| self.visible_bytes == visible_bytes(object.bytes());
        let success = match (self.outputs, self.object, self.text.get()) {
            (Some(outputs), _, _) => Success::of(outputs),
            (None, Some(object), _) if is_alone(&object) => Success::of(object),
            (None, None, Some(text)) => Success::printed(text),
            (None, object, text) => {
                let text = text.map_or(printed, |text| Text::Beside(Body::of(&text)));
                Success { outputs: object, text: Some(text), ..Success::default() }
            }
        };
        Success { artifacts, ..success }
    }
}

fn visible_bytes(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| !byte.is_ascii_whitespace()).count()
}

/// Whether all readers read a line as the same JSON. With a repeated name in an object, or nested too deep, it is just
/// text (ALL-11).
fn is_readable(line: &[u8]) -> bool {
    Tape::scan(line).is_ok_and(|tape| tape.root().is_some_and(|root| !tape.is_ambiguous(root)))
}

/// Whether the line so far, with this part, begins like an object or has not begun.
fn begins_like_an_object(line: &[u8], part: &[u8]) -> bool {
    let first = |bytes: &[u8]| bytes.trim_ascii_start().first().copied();
    first(line).or_else(|| first(part)).is_none_or(|byte| byte == b'{')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the outcome after these blocks were printed.
    fn success(blocks: &[&str]) -> Success {
        let mut gathered = Gathered::default();
        for block in blocks {
            gathered.output(&Bytes::copy_from_slice(block.as_bytes()));
        }
        gathered.success(2, 5)
    }

    /// Returns the outputs after these blocks were printed.
    fn outputs(blocks: &[&str]) -> String {
        success(blocks).outputs.expect("there are some").get().to_owned()
    }

    /// Returns the text beside the outputs.
    fn beside(blocks: &[&str]) -> Option<String> {
        match success(blocks).text {
            Some(Text::Beside(text)) => Some(text.get().to_owned()),
            _ => None,
        }
    }

    #[test]
    fn text_around_an_object_is_kept_beside_it_and_a_lone_object_is_an_object_alone() {
        let all = beside(&["Use this:\n{\"a\": 1}\nand restart.\n"]);
        assert_eq!(all.as_deref(), Some(r#""Use this:\n{\"a\": 1}\nand restart.\n""#));
        assert_eq!(beside(&["{\"a\": 1}\n{\"b\": 1}\n"]).as_deref(), Some(r#""{\"a\": 1}\n{\"b\": 1}\n""#));
        for alone in ["{\"a\": 1}", " \r\n\n\t{\"a\": 1}  \n \n"] {
            assert_eq!(success(&[alone]).text, None, "{alone:?}");
        }
    }

    #[test]
    fn a_long_text_is_where_it_was_stored() {
        let long = "x".repeat(3 << 20);
        let printed = |end| Some(Text::Printed(Printed { attempt: 2, start: 5, end }));
        let text = success(&[&long]);
        assert_eq!((text.outputs, text.text), (None, printed(5 + (3 << 20))));
        let both = success(&[&long, "\n{\"a\": 1}\n"]);
        assert_eq!(both.outputs.as_ref().map(Body::get), Some(r#"{"a": 1}"#));
        assert_eq!(both.text, printed(5 + (3 << 20) + 10));
        // Short, but the bytes say more than a text could.
        let mut gathered = Gathered::default();
        gathered.output(&Bytes::from_static(b"a\xff"));
        assert_eq!(gathered.success(2, 5).text, printed(7));
    }

    #[test]
    fn the_last_line_that_is_an_object_is_the_outputs() {
        assert_eq!(outputs(&["log\n{\"a\": 1}\n{\"b\":  2}\nbye\n"]), r#"{"b":  2}"#);
        assert_eq!(outputs(&["x {\"a\": 1}\n"]), r#"{"output":"x {\"a\": 1}\n"}"#);
        assert_eq!(outputs(&["  {\"a\": 1} \r\nx"]), r#"{"a": 1}"#);
        assert_eq!(outputs(&["{\"a\": 1}\n{no\n[1]\n{\"c\": 1} x\n"]), r#"{"a": 1}"#);
        assert_eq!(outputs(&["{\"a\": 1}"]), r#"{"a": 1}"#, "the last line has no line break");
        assert_eq!(outputs(&[]), r#"{"output":""}"#);
    }

    #[test]
    fn a_line_that_readers_disagree_on_is_text() {
        let nested = |levels: usize| format!("{{\"a\":{}{}}}\n", "[".repeat(levels - 1), "]".repeat(levels - 1));
        for levels in [2, 126, 127] {
            assert_eq!(outputs(&[&nested(levels)]), nested(levels).trim_end(), "{levels} levels");
        }
        let as_text = |line: &str| format!("{{\"output\":{}}}", serde_json::json!(line));
        let twice = "{\"a\": 1, \"a\": 2}\n";
        let unreadable =
            [twice, "{\"b\": [{\"a\": 1, \"\\u0061\": 1}]}\n", "{\"a\": \"\\ud800\"}", &nested(128), &nested(400)];
        for line in unreadable {
            assert_eq!(outputs(&[line]), as_text(line), "{line}");
        }
        assert_eq!(outputs(&["{\"c\": 1}\n", twice]), r#"{"c": 1}"#, "an earlier line is an object still");
        assert_eq!(outputs(&["{\"n\": 1e400}\n"]), r#"{"n": 1e400}"#, "a number that few can hold is one all the same");
    }

    #[test]
    fn it_does_not_matter_how_the_blocks_are_cut() {
        let printed = "no\n\n  \n {\"a\": 1}\nx{\n{\"b\": {\"c\": 2}}\n  y\n{\"d\n";
        for first in 0..=printed.len() {
            for second in first..=printed.len() {
                let cut = [&printed[..first], &printed[first..second], &printed[second..]];
                assert_eq!(outputs(&cut), r#"{"b": {"c": 2}}"#, "cut at {first} and {second}");
            }
        }
    }

    #[test]
    fn a_line_that_is_too_long_is_no_outputs() {
        let long = format!("{{\"a\": \"{}\"}}\n", "x".repeat(OBJECT_BYTES_MAX));
        assert_eq!(outputs(&["{\"b\": 1}\n", &long]), r#"{"b": 1}"#);
        let (one, other) = long.split_at(OBJECT_BYTES_MAX / 2);
        assert_eq!(outputs(&["{\"b\": 1}\n", one, other, "{\"c\": 1}\n"]), r#"{"c": 1}"#);
    }

    #[test]
    fn what_was_given_counts_before_what_was_printed_and_artifacts_have_a_limit() {
        let mut gathered = Gathered::default();
        gathered.output(&Bytes::from_static(b"{\"a\": 1}\n"));
        gathered.outputs(Body::trusted(r#"{"given": 1}"#));
        gathered.outputs(Body::trusted(r#"{"given": 2}"#));
        let artifact = Body::of(&"x".repeat(ARTIFACTS_BYTES_MAX / 2 - 2));
        assert_eq!(gathered.artifact(artifact.clone()), Ok(()));
        assert_eq!(gathered.artifact(artifact), Ok(()));
        assert_eq!(gathered.artifact(Body::trusted("0")), Err(TooMuch));
        let success = gathered.success(1, 0);
        assert_eq!(success.text, None, "what was printed stays step output");
        assert_eq!(success.outputs.as_ref().map_or("", Body::get), r#"{"given": 2}"#);
        assert_eq!(success.artifacts.as_ref().map_or("", Body::get).len(), ARTIFACTS_BYTES_MAX + "[,]".len());
    }
}
