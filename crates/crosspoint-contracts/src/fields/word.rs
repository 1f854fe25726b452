//! Closed sets of words, such as the values of a status.

use super::value::{label, string};
use crate::clause::Clause;
use crate::content::Text;
use crate::json::Value;
use crate::report::{Findings, Place};

/// A closed set of words, such as the values of a status.
pub(crate) trait Word: Copy + Sized + 'static {
    /// Every word with its meaning.
    const WORDS: &'static [(&'static str, Self)];

    /// Returns the meaning of a word.
    fn of(text: Text<'_>) -> Option<Self> {
        Self::WORDS.iter().find(|(word, _)| text == **word).map(|&(_, meaning)| meaning)
    }
}

pub(crate) fn word<'t, 's, W: Word>(clause: &'static Clause) -> impl Fn(Value<'t, 's>, &mut Findings) -> Option<W> {
    move |value, findings| {
        let text = string(clause)(value, findings)?;
        let known = W::of(text);
        if known.is_none() {
            let words: Vec<&str> = W::WORDS.iter().map(|&(word, _)| word).collect();
            not_a_word(value, text, &words, clause, findings);
        }
        known
    }
}

/// Notes a word outside its set. The hint says so where only the case is wrong, or where white space surrounds the
/// word.
pub(crate) fn not_a_word(
    value: Value<'_, '_>,
    text: Text<'_>,
    words: &[&str],
    clause: &'static Clause,
    findings: &mut Findings,
) {
    let message = format!("{} is none of {}", label(value), words.join(", "));
    let decoded = text.decode();
    let spelled = decoded.trim().replace(['-', ' '], "_");
    match words.iter().find(|word| word.eq_ignore_ascii_case(&spelled)) {
        Some(meant) => {
            let hint = format!("Spell it exactly like this: \"{meant}\".");
            findings.note_with_hint(clause, Place::Value(value.index()), message, hint);
        }
        None => findings.note(clause, Place::Value(value.index()), message),
    }
}

/// Declares a closed set of words as an enum that reads itself and describes itself.
macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name {
            $($(#[$variant_doc])* $variant),+
        }

        impl $name {
            /// All words of the set.
            pub const ALL: [$name; [$($word),+].len()] = [$($name::$variant),+];

            /// Returns the word as the contract spells it.
            pub fn word(self) -> &'static str {
                match self {
                    $($name::$variant => $word),+
                }
            }
        }

        /// Stands in for a word that could not be read. A document with such a word is not handed out.
        impl Default for $name {
            fn default() -> Self {
                <Self as $crate::fields::Word>::WORDS[0].1
            }
        }

        impl $crate::fields::Word for $name {
            const WORDS: &'static [(&'static str, Self)] = &[$(($word, $name::$variant)),+];
        }

        $crate::content::inline_schema!($name, { "type": "string", "enum": [$($word),+] });
    };
}
pub(crate) use words;
