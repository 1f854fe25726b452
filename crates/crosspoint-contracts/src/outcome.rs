//! How a job ended, in parts.
//!
//! An outcome is the output of an agent, or the reason why there is none, each part as it was spelled. It is stored in
//! these parts and rendered only where it is shown, so that code that needs one part takes it instead of reading a
//! document again.

use std::ops::Range;

use bytes::Bytes;

use crate::content::Body;
use crate::failure::{Failure, Repeat};
use crate::json::{self, Tape, Type, Value};
use crate::printed::{Partial, Printed};
use crate::reply::{AgentDocument, Failed, Given, Success};

/// The three ways in which a job can end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// The work was done.
    Completed,
    /// The work could not be done.
    Failed,
    /// The work was cancelled.
    Cancelled,
}

/// How a job ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Which of the three ways.
    pub status: Status,
    /// Why the job was not completed.
    pub reason: Option<Reason>,
    /// The agent's output: an object, a text, any JSON.
    pub outputs: Option<Body>,
    /// The agent's text, where there is one (ALL-8).
    pub text: Option<Text>,
    /// How long the text would be in bytes, if a part of it never came; `None` where it is whole.
    pub whole_bytes: Option<u64>,
    /// A JSON array of artifacts, where there are any.
    pub artifacts: Option<Body>,
    /// What the agent gave for other homes, such as the resources that the work used: a JSON object of the homes that
    /// hold it.
    pub usage: Option<Body>,
    /// The agent's own document, without what the parts above hold.
    pub document: Option<AgentDocument>,
}

/// Why a job was not completed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The failure, from the closed list.
    pub failure: Failure,
    /// Whether sending the request again is safe.
    pub repeat: Repeat,
    /// One sentence, as a JSON string. Without it the failure's own sentence is used.
    pub message: Option<Body>,
    /// A code that is more exact than the failure, as a JSON string: the agent's own, where it has one.
    pub code: Option<Body>,
    /// What else is known, as a JSON object. It holds the code too, because people are shown this object.
    pub details: Option<Body>,
}

/// Where the text of an outcome is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Text {
    /// Within the outputs, at this range of their bytes. The outputs are a text, or an object with a text as its only
    /// member `output`, which is what a program printed.
    Within(Range<usize>),
    /// Beside the outputs, as a JSON string.
    Beside(Body),
    /// In the stored blocks of what a program printed (ALL-12). If there are no outputs, the text is the output. Only
    /// such outcomes are stored; their text is put together before a document is written.
    Printed(Printed),
    /// Not all that was printed, byte for byte, and said to be so. It is made when a document is written, and never
    /// stored. Boxed, because hardly any text is such.
    Partial(Box<Partial>),
}

impl Status {
    /// All three statuses.
    pub const ALL: [Status; 3] = [Status::Completed, Status::Failed, Status::Cancelled];

    /// Returns the name, as it is spelled outside the contracts.
    pub fn name(self) -> &'static str {
        match self {
            Status::Completed => "completed",
            Status::Failed => "failed",
            Status::Cancelled => "cancelled",
        }
    }
}

impl Outcome {
    /// Returns the outcome of a job that ends with the result of its agent.
    pub fn completed(success: Success) -> Outcome {
        let Success { outputs, text, whole_bytes, artifacts, usage, document } = success;
        Outcome { status: Status::Completed, reason: None, outputs, text, whole_bytes, artifacts, usage, document }
    }

    /// Returns the outcome of a job that ends with a failed attempt. An agent may itself report that the work was
    /// cancelled.
    pub fn failed(failed: Failed, repeat: Repeat) -> Outcome {
        let Failed { failure, message, code, details, given, document, .. } = failed;
        let Given { outputs, text, whole_bytes, artifacts } = given.map(|given| *given).unwrap_or_default();
        Outcome {
            status: if failure == Failure::Cancelled { Status::Cancelled } else { Status::Failed },
            reason: Some(Reason { failure, repeat, message, code, details }),
            outputs,
            text,
            whole_bytes,
            artifacts,
            usage: None,
            document: document.map(|document| *document),
        }
    }

    /// Returns why the job was not completed, and whether sending the request again is safe.
    pub fn why(&self) -> Option<(Failure, Repeat)> {
        self.reason.as_ref().map(|reason| (reason.failure, reason.repeat))
    }

    /// Returns the failure that the job ended with.
    pub fn failure(&self) -> Option<Failure> {
        self.reason.as_ref().map(|reason| reason.failure)
    }

    /// Returns the agent's text, as a JSON string.
    pub fn text(&self) -> Option<Body> {
        match self.text.as_ref()? {
            Text::Within(range) => {
                let outputs = self.outputs.as_ref()?.bytes();
                (range.end <= outputs.len()).then(|| Body::trusted(outputs.slice(range.clone())))
            }
            Text::Beside(text) => Some(text.clone()),
            Text::Partial(partial) => Some(partial.text.clone()),
            Text::Printed(_) => None,
        }
    }

    /// Returns where the text is stored, if it has yet to be put together.
    pub fn printed(&self) -> Option<Printed> {
        match &self.text {
            Some(Text::Printed(printed)) => Some(*printed),
            Some(Text::Within(_) | Text::Beside(_) | Text::Partial(_)) | None => None,
        }
    }

    /// Returns whether the agent's output is an object.
    pub fn outputs_are_object(&self) -> bool {
        self.outputs.as_ref().is_some_and(|outputs| outputs.bytes().starts_with(b"{"))
    }

    /// Returns how long its parts are together, in bytes. The usage and the reason's code are not counted, nor is a
    /// text that has yet to be put together.
    pub fn bytes(&self) -> usize {
        let beside = match &self.text {
            Some(Text::Beside(text)) => Some(text),
            Some(Text::Partial(partial)) => Some(&partial.text),
            Some(Text::Within(_) | Text::Printed(_)) | None => None,
        };
        let reason = self.reason.as_ref();
        let reason = reason.into_iter().flat_map(|reason| [reason.message.as_ref(), reason.details.as_ref()]);
        let document = self.document.as_ref().map(|document| &document.document);
        let own = [self.outputs.as_ref(), beside, self.artifacts.as_ref(), document];
        own.into_iter().chain(reason).flatten().map(|part| part.bytes().len()).sum()
    }
}

/// Returns where the text of these outputs is, if they are nothing but a text: see [`Text::Within`].
pub fn text_within(outputs: &Body) -> Option<Range<usize>> {
    let bytes: &Bytes = outputs.bytes();
    if bytes.starts_with(b"\"") {
        return Some(0..bytes.len());
    }
    // Most objects are recognised by their first bytes, without reading them.
    let name = bytes.strip_prefix(b"{")?.trim_ascii_start().strip_prefix(b"\"")?;
    let name = &name[..name.iter().position(|byte| *byte == b'"')?];
    if name != b"output" && !name.contains(&b'\\') {
        return None;
    }
    let tape = Tape::scan(bytes).ok()?;
    let mut members = tape.root()?.members();
    let is_text = |(name, value): &(json::Text<'_>, Value<'_, '_>)| *name == *"output" && value.kind() == Type::String;
    let (_, text) = members.next().filter(is_text)?;
    let (start, end) = text.span();
    members.next().is_none().then_some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_found_where_it_is_all_there_is() {
        let within = |outputs: &'static str| text_within(&Body::trusted(outputs)).map(|range| &outputs[range]);
        assert_eq!(within(r#""a text""#), Some(r#""a text""#));
        assert_eq!(within(r#"{"output":"x"}"#), Some(r#""x""#));
        assert_eq!(within("{ \"output\" :\n\"x\" }"), Some(r#""x""#));
        assert_eq!(within(r#"{"\u006futput":"x"}"#), Some(r#""x""#), "a name may be spelled in other ways");
        for other in
            ["{}", "[]", "null", r#"{"output":1}"#, r#"{"output":"x","more":1}"#, r#"{"o\u0075":"x"}"#, r#"{"a":"b"}"#]
        {
            assert_eq!(within(other), None, "{other}");
        }
        assert_eq!(Success::printed("a\n").outputs.as_ref().map(Body::get), Some(r#"{"output":"a\n"}"#));
        assert_eq!(Outcome::completed(Success::printed("a\n")).text().as_ref().map(Body::get), Some(r#""a\n""#));
    }
}
