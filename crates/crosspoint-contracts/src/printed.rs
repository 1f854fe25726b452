//! What a program printed, as the text of an outcome (ALL-12).
//!
//! What programs print is stored in blocks as it comes, and an outcome only says which of the bytes are its text. The
//! text is put together from the blocks when a document is written, block by block, as the JSON string that the
//! document will hold: there is never a second copy of it. A text that is too long is represented by its end, which
//! says so. A text of which a part never came says so too.

use std::ops::Range;

use bytes::Bytes;

use crate::content::Body;
use crate::json::{push_escaped, quoted};
use crate::outcome::{Outcome, Text};

/// Longest text that is put together whole, in bytes of UTF-8 (ALL-12).
pub const TEXT_BYTES_MAX: usize = 10 << 20;

/// How much of a longer text is given, in bytes as they were printed: its end.
pub const END_BYTES: usize = 1 << 20;

/// The name of the remark that a text is not whole.
pub const TRUNCATED: &str = "truncated";

/// The name of the remark that a text is not what was printed, byte for byte.
pub const ENCODING: &str = "output_encoding";

/// The value of [`ENCODING`] where some of the bytes were no text.
pub const LOSSY: &str = "\"lossy\"";

const BEFORE: &str = "{\"output\":";

/// A text that is stored as blocks of an attempt's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The attempt that printed it.
    pub attempt: u32,
    /// Where in the output of the attempt the text begins, in bytes.
    pub start: u64,
    /// Where it ends.
    pub end: u64,
}

impl Printed {
    /// Returns how long it is, in bytes.
    pub fn bytes(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns the bytes of the attempt's output that are needed to show the text: all, or the end of a long one.
    pub fn needed(&self) -> Range<u64> {
        if self.bytes() <= TEXT_BYTES_MAX as u64 { self.start..self.end } else { self.last() }
    }

    /// Returns the bytes of its end.
    pub fn last(&self) -> Range<u64> {
        self.start.max(self.end.saturating_sub(END_BYTES as u64))..self.end
    }
}

/// A text that is not all that was printed, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Partial {
    /// The text, as a JSON string.
    pub text: Body,
    /// Where the rest is, if the text is not whole.
    pub truncated: Option<Truncated>,
    /// Whether some of the bytes were no text. Each sequence of such bytes is shown as U+FFFD.
    pub is_lossy: bool,
}

/// What is said of a text that is not whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Truncated {
    /// How long the whole text is, in bytes.
    pub bytes: u64,
    /// Where all of it is.
    pub href: Box<str>,
}

impl Truncated {
    /// Returns it as a JSON object.
    pub fn json(&self) -> String {
        format!("{{\"bytes\":{},\"href\":{}}}", self.bytes, quoted(&self.href))
    }
}

impl Partial {
    /// Returns the names and values, as JSON, of what is to be said of the text.
    pub fn remarks(&self) -> impl Iterator<Item = (&'static str, String)> {
        let truncated = self.truncated.as_ref().map(|truncated| (TRUNCATED, truncated.json()));
        truncated.into_iter().chain(self.is_lossy.then(|| (ENCODING, LOSSY.to_owned())))
    }

    /// Returns the object that a mere text is in contracts that know objects (ALL-8), with the remarks beside the text.
    pub fn outputs(&self) -> String {
        let mut out = [BEFORE, self.text.get()].concat();
        for (name, value) in self.remarks() {
            out.push_str(&format!(",\"{name}\":{value}"));
        }
        out.push('}');
        out
    }
}

/// The text is longer than [`TEXT_BYTES_MAX`], because bytes that are no text take more room as text.
#[derive(Debug, PartialEq, Eq)]
pub struct TooLong;

/// Puts a text together from blocks.
pub struct Assembly {
    printed: Printed,
    /// The JSON that will be part of the document.
    out: String,
    form: Form,
    /// The first byte of the next block, in the output of the attempt.
    at: u64,
    /// Whether the text began before the first block.
    is_cut: bool,
    /// How many bytes at the beginning may belong to a character that began before.
    to_skip: usize,
    /// The beginning of a character whose other bytes come with the next block.
    begun: Vec<u8>,
    text_bytes: usize,
    is_lossy: bool,
}

/// What the text is among the parts of the outcome, and with it the JSON that it becomes.
#[derive(Clone, Copy)]
enum Form {
    /// All that a program gave: the member `output` of an object (ALL-8).
    Member,
    /// All that an agent of a contract gave, beside its document: a string, like a text that came within the document.
    Mere,
    /// A string beside an object.
    Beside,
}

impl Form {
    fn of(outcome: &Outcome) -> Form {
        match (&outcome.outputs, &outcome.document) {
            (Some(_), _) => Form::Beside,
            (None, Some(_)) => Form::Mere,
            (None, None) => Form::Member,
        }
    }

    /// Returns the JSON before the text and after it.
    fn around(self) -> (&'static str, &'static str) {
        match self {
            Form::Member => ("{\"output\":\"", "\"}"),
            Form::Mere | Form::Beside => ("\"", "\""),
        }
    }
}

/// A text that was put together.
pub struct Assembled {
    json: String,
    form: Form,
    is_whole: bool,
    is_lossy: bool,
    bytes: u64,
}

impl Assembly {
    /// Begins the text of an outcome, from these bytes of the attempt's output on.
    pub fn new(outcome: &Outcome, printed: Printed, needed: &Range<u64>) -> Assembly {
        let form = Form::of(outcome);
        let bytes = usize::try_from(needed.end.saturating_sub(needed.start)).unwrap_or(0).min(TEXT_BYTES_MAX);
        // A little more than the bytes themselves, for the escapes of a usual text.
        let mut out = String::with_capacity(bytes + bytes / 16 + 64);
        out.push_str(form.around().0);
        let is_cut = needed.start > printed.start;
        Assembly {
            printed,
            out,
            form,
            at: needed.start,
            is_cut,
            to_skip: if is_cut { 3 } else { 0 },
            begun: Vec::new(),
            text_bytes: 0,
            is_lossy: false,
        }
    }

    /// Adds the next block.
    pub fn push(&mut self, block: &[u8]) -> Result<(), TooLong> {
        self.at += block.len() as u64;
        let mut block = block;
        if self.to_skip > 0 {
            // A text of which the beginning is left out begins with a whole character.
            let is_middle = |byte: &&u8| **byte & 0b1100_0000 == 0b1000_0000;
            let skipped = block.iter().take(self.to_skip).take_while(is_middle).count();
            self.to_skip = if skipped == block.len() { self.to_skip - skipped } else { 0 };
            block = &block[skipped..];
        }
        while !self.begun.is_empty()
            && let Some((next, rest)) = block.split_first()
        {
            let mut begun = std::mem::take(&mut self.begun);
            begun.push(*next);
            self.decode(&begun)?;
            block = rest;
        }
        self.decode(block)
    }

    fn decode(&mut self, bytes: &[u8]) -> Result<(), TooLong> {
        let mut chunks = bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.text(chunk.valid())?;
            let invalid = chunk.invalid();
            if invalid.is_empty() {
                continue;
            }
            if chunks.peek().is_none() && is_beginning(invalid) {
                self.begun = invalid.to_vec();
            } else {
                self.is_lossy = true;
                self.text("\u{fffd}")?;
            }
        }
        Ok(())
    }

    fn text(&mut self, text: &str) -> Result<(), TooLong> {
        self.text_bytes += text.len();
        if self.text_bytes > TEXT_BYTES_MAX {
            return Err(TooLong);
        }
        push_escaped(&mut self.out, text);
        Ok(())
    }

    /// Ends the text. It is not whole if the first blocks were left out, or if the last did not come.
    pub fn finish(mut self) -> Result<Assembled, TooLong> {
        if !self.begun.is_empty() {
            self.is_lossy = true;
            self.text("\u{fffd}")?;
        }
        self.out.push_str(self.form.around().1);
        Ok(Assembled {
            json: self.out,
            form: self.form,
            is_whole: !self.is_cut && self.at >= self.printed.end,
            is_lossy: self.is_lossy,
            bytes: self.printed.bytes(),
        })
    }
}

/// Whether these bytes are the beginning of a character, of which more bytes may follow.
fn is_beginning(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}

impl Assembled {
    /// Returns the outcome with its text. `href` says where all that was printed can be had.
    #[must_use]
    pub fn into_outcome(self, outcome: &Outcome, href: &str) -> Outcome {
        let Assembled { json, form, is_whole, is_lossy, bytes } = self;
        let mut outcome = outcome.clone();
        // The blocks may be all that came, and yet not all that was to come.
        let missing = outcome.whole_bytes.take();
        let within = match form {
            Form::Member => BEFORE.len()..json.len() - 1,
            Form::Mere | Form::Beside => 0..json.len(),
        };
        let json = Bytes::from(json);
        if is_whole && !is_lossy && missing.is_none() {
            match form {
                Form::Member | Form::Mere => {
                    outcome.outputs = Some(Body::trusted(json));
                    outcome.text = Some(Text::Within(within));
                }
                Form::Beside => outcome.text = Some(Text::Beside(Body::trusted(json))),
            }
            return outcome;
        }
        let text = Body::trusted(json.slice(within));
        let bytes = missing.or((!is_whole).then_some(bytes));
        let truncated = bytes.map(|bytes| Truncated { bytes, href: href.into() });
        outcome.text = Some(Text::Partial(Box::new(Partial { text, truncated, is_lossy })));
        outcome
    }
}

/// Returns the outcome with a text that says that a part of it never came; `None` where nothing is missing, or where
/// the text has yet to be put together. `href` says where all that came can be had.
pub fn with_remark(outcome: &Outcome, href: impl FnOnce() -> String) -> Option<Outcome> {
    let bytes = outcome.whole_bytes?;
    let text = outcome.text()?;
    let truncated = Some(Truncated { bytes, href: href().into() });
    Some(Outcome { whole_bytes: None, ..with_partial(outcome, Partial { text, truncated, is_lossy: false }) })
}

/// Returns the outcome with a text that says that some of its bytes were no UTF-8; unchanged if it has no text.
#[must_use]
pub fn lossy(outcome: Outcome) -> Outcome {
    match outcome.text() {
        Some(text) => with_partial(&outcome, Partial { text, truncated: None, is_lossy: true }),
        None => outcome,
    }
}

fn with_partial(outcome: &Outcome, partial: Partial) -> Outcome {
    // Outputs that hold the text hold nothing else.
    let is_within = matches!(outcome.text, Some(Text::Within(_)));
    let outputs = outcome.outputs.clone().filter(|_| !is_within);
    Outcome { outputs, text: Some(Text::Partial(Box::new(partial))), ..outcome.clone() }
}

#[cfg(test)]
mod tests;
