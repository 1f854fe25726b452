//! What the outcome of a program will hold, gathered while it runs, in bounded memory.
//!
//! The outputs are what the program gave last with an `@crosspoint ` line. If it gave none, they are the last line it
//! printed that is a JSON object. If there is none either, they are what it printed, of which the last MiB is kept.

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use crosspoint_contracts::json::Tape;
use crosspoint_contracts::reply::Success;

use super::lines::{line_end, position};
use super::tail::Tail;

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
    tail: Tail,
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
        self.tail.push(block);
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

    /// Returns the outcome of a program that succeeded.
    pub(super) fn success(mut self) -> Success {
        // The last line may lack its line break.
        self.end_line();
        let success = self.outputs.or(self.object).map_or_else(|| self.tail.success(), Success::of);
        let artifacts: Vec<&str> = self.artifacts.iter().map(Body::get).collect();
        let artifacts = (!artifacts.is_empty()).then(|| Body::trusted(format!("[{}]", artifacts.join(","))));
        Success { artifacts, ..success }
    }
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

    /// Returns the outputs after these blocks were printed.
    fn outputs(blocks: &[&str]) -> String {
        let mut gathered = Gathered::default();
        for block in blocks {
            gathered.output(&Bytes::copy_from_slice(block.as_bytes()));
        }
        gathered.success().outputs.expect("there are some").get().to_owned()
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
        let success = gathered.success();
        assert_eq!(success.outputs.as_ref().map_or("", Body::get), r#"{"given": 2}"#);
        assert_eq!(success.artifacts.as_ref().map_or("", Body::get).len(), ARTIFACTS_BYTES_MAX + "[,]".len());
    }
}
