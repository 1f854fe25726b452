//! What is wrong with a workflow file, and where.

use std::ops::Range;

use crosspoint_contracts::clause::Level;
use crosspoint_contracts::nearest::nearest;

/// Something that is wrong with a workflow file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// An error if no run is possible, or if the file cannot mean what it says.
    pub level: Level,
    /// The bytes of the file that are wrong.
    pub span: Range<usize>,
    /// What is wrong.
    pub what: String,
    /// How to mend it.
    pub hint: String,
}

/// Most letters that are compared with letters in search of words that the author may have meant. A file of long names
/// that are all wrong would keep the reader busy for minutes; its first mistakes get a suggestion all the same.
const COMPARISONS_MAX: usize = 20_000_000;

/// Most mistakes that are named. A file may have a hundred thousand, and a reader stops much earlier.
const NAMED_MAX: usize = 100;

/// Most characters of a name from the file that a report shows.
const SHOWN_CHARS_MAX: usize = 64;

/// The mistakes of a file that is being read.
#[derive(Default)]
pub(super) struct Mistakes {
    found: Vec<Mistake>,
    /// How many more there are, and whether an error is among them.
    more: usize,
    more_errors: bool,
    comparisons: usize,
}

impl Mistakes {
    pub(super) fn error(&mut self, span: Range<usize>, what: impl Into<String>, hint: impl Into<String>) {
        self.add(Mistake { level: Level::Error, span, what: what.into(), hint: hint.into() });
    }

    pub(super) fn warning(&mut self, span: Range<usize>, what: impl Into<String>, hint: impl Into<String>) {
        self.add(Mistake { level: Level::Warning, span, what: what.into(), hint: hint.into() });
    }

    fn add(&mut self, mistake: Mistake) {
        if self.found.len() < NAMED_MAX {
            return self.found.push(mistake);
        }
        self.more += 1;
        self.more_errors |= mistake.level == Level::Error;
    }

    pub(super) fn any_error(&self) -> bool {
        self.more_errors || self.found.iter().any(|mistake| mistake.level == Level::Error)
    }

    /// Returns the mistakes in the order of the file.
    pub(super) fn sorted(mut self) -> Vec<Mistake> {
        self.found.sort_by_key(|mistake| mistake.span.start);
        if let Some(last) = self.found.last().filter(|_| self.more > 0) {
            let (what, hint) = (format!("{} more are not named", self.more), "mend these first".to_owned());
            let level = if self.more_errors { Level::Error } else { Level::Warning };
            self.found.push(Mistake { level, span: last.span.clone(), what, hint });
        }
        self.found
    }

    /// Suggests the known word that the author may have meant, or else what `otherwise` says.
    pub(super) fn suggestion(&mut self, word: &str, known: &[&str], otherwise: impl FnOnce() -> String) -> String {
        let letters: usize = known.iter().map(|known| known.len()).sum();
        let comparisons = self.comparisons.saturating_add(word.len().saturating_mul(letters));
        if comparisons > COMPARISONS_MAX {
            return otherwise();
        }
        self.comparisons = comparisons;
        nearest(word, known).map_or_else(otherwise, |nearest| format!("did you mean \"{nearest}\"?"))
    }
}

/// Returns a name from the file in quotes, cut if it is long, and on one line.
pub(super) fn quoted(name: &str) -> String {
    let line = |character: char| if character.is_control() { ' ' } else { character };
    let shown: String = name.chars().take(SHOWN_CHARS_MAX).map(line).collect();
    let rest = if shown.len() < name.len() { "..." } else { "" };
    format!("\"{shown}{rest}\"")
}
