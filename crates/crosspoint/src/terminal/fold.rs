//! Long sentences for people: broken at spaces, so that a narrow terminal does not break them within a word.

use std::io::{self, IsTerminal, Write};

use unicode_width::UnicodeWidthStr;

/// Narrowest terminal for which lines are broken.
const WIDTH_MIN: usize = 40;

/// Breaks a text that goes to stderr, if that is a terminal. Lines after the first begin with `indent` spaces.
pub(crate) fn for_stderr(text: &str, indent: usize) -> String {
    let size = io::stderr().is_terminal().then(|| terminal_size::terminal_size_of(io::stderr())).flatten();
    folded(text, indent, size)
}

/// The same for stdout.
pub(crate) fn for_stdout(text: &str, indent: usize) -> String {
    let size = io::stdout().is_terminal().then(|| terminal_size::terminal_size_of(io::stdout())).flatten();
    folded(text, indent, size)
}

fn folded(text: &str, indent: usize, size: Option<(terminal_size::Width, terminal_size::Height)>) -> String {
    match size.map(|(terminal_size::Width(width), _)| usize::from(width)).filter(|width| *width >= WIDTH_MIN) {
        Some(width) => fold(text, indent, width),
        None => text.to_owned(),
    }
}

/// Joins words and what follows them, which goes to stderr and must stay whole: on a line of its own where there is no
/// room for it beside the words.
pub(crate) fn ending_whole(words: &str, whole: &str) -> String {
    let size = terminal_size::terminal_size_of(io::stderr()).filter(|_| io::stderr().is_terminal());
    let width = size.map_or(usize::MAX, |(terminal_size::Width(width), _)| usize::from(width));
    ending_within(words, whole, width)
}

fn ending_within(words: &str, whole: &str, width: usize) -> String {
    let fits = seen_width(words) + 1 + seen_width(whole) <= width;
    if fits { format!("{words} {whole}") } else { format!("{words}\n  {whole}") }
}

/// Prints a remark on stderr. If it is broken into lines, those after the first begin with `indent` spaces.
pub(crate) fn say(text: &str, indent: usize) {
    let _ = writeln!(anstream::stderr().lock(), "{}", for_stderr(text, indent));
}

/// Prints what stands before the place where a person types.
pub(crate) fn prompt(text: &str) {
    let mut stderr = anstream::stderr().lock();
    let _ = write!(stderr, "{text}").and_then(|()| stderr.flush());
}

/// Breaks each line into lines of this width. A word that is longer stays whole.
fn fold(text: &str, indent: usize, width: usize) -> String {
    let lines: Vec<String> = text.lines().map(|line| fold_line(line, indent, width)).collect();
    lines.join("\n")
}

fn fold_line(line: &str, indent: usize, width: usize) -> String {
    if seen_width(line) <= width {
        return line.to_owned();
    }
    let (mut folded, mut used) = (String::new(), 0);
    for word in line.split_inclusive(' ') {
        if used > indent && used + seen_width(word.trim_end()) > width {
            folded.truncate(folded.trim_end().len());
            folded.push('\n');
            folded.push_str(&" ".repeat(indent));
            used = indent;
        }
        folded.push_str(word);
        used += seen_width(word);
    }
    folded
}

/// Columns that a text takes. Colours take none.
fn seen_width(text: &str) -> usize {
    anstream::adapter::strip_str(text).to_string().width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_spaces_and_words_stay_whole() {
        assert_eq!(fold("hint: one two three four", 6, 14), "hint: one two\n      three\n      four");
        assert_eq!(fold("  short", 2, 20), "  short");
        assert_eq!(fold("see /a/very/long/path there", 0, 10), "see\n/a/very/long/path\nthere");
        assert_eq!(fold("  tokens  every request", 10, 17), "  tokens  every\n          request");
        assert_eq!(fold("\x1b[1mone\x1b[0m two three", 2, 9), "\x1b[1mone\x1b[0m two\n  three");
    }

    #[test]
    fn a_command_is_never_broken() {
        assert_eq!(ending_within("then go on:", "crosspoint jobs list", 40), "then go on: crosspoint jobs list");
        assert_eq!(ending_within("then go on:", "crosspoint jobs list", 31), "then go on:\n  crosspoint jobs list");
    }
}
