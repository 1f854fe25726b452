//! Events as JSON.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use crosspoint_engine::event::{Entry, What};
use crosspoint_engine::store::Found;
use serde::Serialize;

use super::outcome;

/// An event as callers see it: the `data` of an event in a stream.
pub(crate) struct Event<'e> {
    pub(crate) entry: &'e Entry,
    /// The rules that were broken about the job, beside its outcome.
    pub(crate) violations: &'e [Found],
}

impl Serialize for Event<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap;
        let mut map = serializer.serialize_map(None)?;
        let Event { entry, violations } = self;
        map.serialize_entry("at", &entry.at)?;
        match &entry.what {
            What::Accepted => {}
            What::Started { attempt, agent } => {
                map.serialize_entry("attempt", attempt)?;
                map.serialize_entry("agent", agent)?;
            }
            What::Progress(progress) => {
                map.serialize_entry("percent", &progress.percent)?;
                map.serialize_entry("step", &progress.step)?;
                if let Some(document) = progress.document.as_ref().or(progress.began.as_ref()) {
                    map.serialize_entry("said", document)?;
                }
            }
            What::Output { attempt, offset, block } => {
                map.serialize_entry("attempt", attempt)?;
                map.serialize_entry("offset", offset)?;
                let text = String::from_utf8_lossy(&block.0);
                map.serialize_entry("text", &text)?;
                if let Cow::Owned(_) = text {
                    // The text is not all of the bytes, so they are added.
                    map.serialize_entry("base64", &STANDARD.encode(&block.0))?;
                }
            }
            What::Asked { question } => map.serialize_entry("question", question)?,
            What::Answered { answer } => map.serialize_entry("answer", answer)?,
            What::Step { step } => map.serialize_entry("done", step)?,
            What::Retrying { attempt, failure, until } => {
                map.serialize_entry("attempt", attempt)?;
                map.serialize_entry("failure", failure.name())?;
                map.serialize_entry("until", until)?;
            }
            What::Interrupted { attempt } => map.serialize_entry("attempt", attempt)?,
            What::Ended(ending) => {
                map.serialize_entry("outcome", &outcome::json(ending))?;
                if !violations.is_empty() {
                    map.serialize_entry("violations", violations)?;
                }
            }
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use crosspoint_contracts::content::Block;
    use crosspoint_contracts::time::Time;

    use super::*;

    #[test]
    fn a_block_that_is_no_text_is_shown_with_its_bytes() {
        let shown = |block: &'static [u8]| {
            let what = What::Output { attempt: 1, offset: 0, block: Block(block.into()) };
            let entry = &Entry { n: 1, at: Time::default(), what };
            serde_json::to_value(Event { entry, violations: &[] }).expect("it is JSON")
        };
        assert_eq!(shown("grüße".as_bytes())["text"], "grüße");
        assert!(shown("grüße".as_bytes())["base64"].is_null());
        let binary = shown(b"a\xff");
        assert_eq!((&binary["text"], &binary["base64"]), (&"a\u{fffd}".into(), &"Yf8=".into()));
    }
}
