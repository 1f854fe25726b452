//! Whether two requests are for the same work: the same name, and an input that means the same (ALL-1).

use std::sync::Arc;

use crosspoint_contracts::content::Text;
use crosspoint_contracts::json::{Tape, Type, Value, one_spelling};
use sha2::{Digest, Sha256};

/// What two requests for the same work have in common. The input itself is not kept for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Likeness(String);

impl Likeness {
    /// Makes the likeness of a request.
    pub(crate) fn of(work: &Arc<str>, input: &[u8]) -> Likeness {
        let mut digest = Sha256::new();
        digest.update(work.len().to_le_bytes());
        digest.update(work.as_bytes());
        match Tape::scan(input) {
            Ok(tape) => tape.root().into_iter().for_each(|root| add(&mut digest, root)),
            Err(_) => digest.update(input),
        }
        Likeness(hex(&digest.finalize()))
    }

    /// Reads what [`Likeness::text`] wrote.
    pub(crate) fn read(text: &str) -> Likeness {
        Likeness(text.to_owned())
    }

    /// Returns it as text.
    pub(crate) fn text(&self) -> &str {
        &self.0
    }
}

/// Returns bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let digit = |half: u8| char::from(b"0123456789abcdef"[usize::from(half)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

/// Adds a value, however it is spelled: members in the order of their names, texts without escapes, and numbers by
/// their value.
fn add(digest: &mut Sha256, value: Value<'_, '_>) {
    let text = |digest: &mut Sha256, text: &str| {
        digest.update(text.len().to_le_bytes());
        digest.update(text.as_bytes());
    };
    match value.kind() {
        Type::Object => {
            let mut members: Vec<_> = value.members().map(|(name, value)| (name.decode(), value)).collect();
            members.sort_by(|a, b| a.0.cmp(&b.0));
            digest.update(b"{");
            for (name, value) in members {
                text(digest, &name);
                add(digest, value);
            }
            digest.update(b"}");
        }
        Type::Array => {
            digest.update(b"[");
            value.items().for_each(|item| add(digest, item));
            digest.update(b"]");
        }
        Type::String => {
            digest.update(b"\"");
            text(digest, &value.text().map(Text::decode).unwrap_or_default());
        }
        Type::Number => {
            digest.update(b"=");
            text(digest, &one_spelling(value.source()));
        }
        Type::Key | Type::Boolean | Type::Null => {
            digest.update(b"=");
            text(digest, value.source());
        }
    }
}
