//! What people see: findings with the line and a caret under the place, errors with causes and a hint.
//!
//! The output is readable without colour. Everything that comes from a document is shown through `visible`, so that a
//! file cannot move the cursor or colour the terminal. This is written here rather than taken from a crate because a
//! line may be 50 MB long and a file may be anything but text: only a window of bytes around the place is ever read.

use std::io::{self, Write};
use std::panic::Location;

use anstyle::{AnsiColor, Style};
use crosspoint_contracts::clause::Level;
use crosspoint_contracts::{Finding, Report};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::client::Failed;
use crate::config::Invalid;
use crate::input::Source;
use crate::terminal::fold;

/// Most bytes of a line that are shown before the place, and from the place on. With the margin, a line of ASCII fits
/// 80 columns.
const BEFORE_BYTES: usize = 28;
const AFTER_BYTES: usize = 40;

/// Most bytes of a pointer that are shown.
const POINTER_BYTES: usize = 120;

pub(crate) fn bold() -> Style {
    Style::new().bold()
}

pub(crate) fn dim() -> Style {
    Style::new().dimmed()
}

pub(crate) fn level(level: Level) -> Style {
    match level {
        Level::Error => AnsiColor::Red.on_default().bold(),
        Level::Warning => AnsiColor::Yellow.on_default().bold(),
    }
}

/// The verdict on a document.
#[derive(Clone, Copy)]
pub(crate) struct Verdict {
    pub(crate) good: bool,
    /// Warnings count as errors.
    pub(crate) strict: bool,
}

/// A document's name in messages.
pub(crate) fn shown_name(source: &Source) -> String {
    match source {
        Source::Stdin => "<stdin>".to_owned(),
        Source::File(_) => visible(&source.name()),
    }
}

/// Prints the report on one document.
pub(crate) fn report(
    out: &mut impl Write,
    name: &str,
    source: &[u8],
    report: &Report,
    verdict: Verdict,
) -> io::Result<()> {
    let mut shown = None;
    for finding in &report.findings {
        // Several members are often missing from one object; its line is shown once.
        let excerpt = (shown != Some(finding.span)).then(|| Excerpt::around(source, finding.span));
        shown = Some(finding.span);
        finding_with_place(out, name, finding, excerpt)?;
    }
    close(out, name, report, verdict)
}

/// Prints the end of a report: the numbers of findings, and the verdict.
fn close(out: &mut impl Write, name: &str, report: &Report, verdict: Verdict) -> io::Result<()> {
    if report.unlisted > 0 {
        writeln!(out, "... and {} more\n", report.unlisted)?;
    }
    let kind = match report.kind {
        Some(kind) => kind.name(),
        None if report.findings.is_empty() => return Ok(()),
        None => "document of any contract",
    };
    let green = AnsiColor::Green.on_default().bold();
    let strict = if verdict.strict && report.is_valid() { " (--strict: warnings count)" } else { "" };
    match (verdict.good, counts(report)) {
        (true, None) => writeln!(out, "{green}ok{green:#}: {name} is a valid {kind}"),
        (true, Some(counts)) => writeln!(out, "{green}ok{green:#}: {name} is a valid {kind}, with {counts}"),
        (false, counts) => writeln!(out, "{name} is not a valid {kind}: {}{strict}", counts.unwrap_or_default()),
    }
}

/// The numbers of errors and warnings, in words.
pub(crate) fn counts(report: &Report) -> Option<String> {
    let part = |count: usize, word: &str| match count {
        0 => None,
        1 => Some(format!("1 {word}")),
        _ => Some(format!("{count} {word}s")),
    };
    let errors = part(report.count(Level::Error), "error");
    let warnings = part(report.count(Level::Warning), "warning");
    let parts: Vec<String> = errors.into_iter().chain(warnings).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Prints one finding with its place but without its line, for output that must not show content.
pub(crate) fn finding(out: &mut impl Write, name: &str, finding: &Finding) -> io::Result<()> {
    finding_with_place(out, name, finding, None)
}

fn finding_with_place(out: &mut impl Write, name: &str, finding: &Finding, excerpt: Option<Excerpt>) -> io::Result<()> {
    finding_head(out, finding)?;
    let (style, dim) = (level(finding.level), dim());
    let pointer = match finding.pointer.as_str() {
        "" => String::new(),
        pointer => format!("  {}", shown_pointer(pointer)),
    };
    let number = finding.line.to_string();
    let gutter = " ".repeat(number.len());
    let position = format!("{name}:{}:{}", finding.line, finding.column);
    writeln!(out, "{gutter}{dim}-->{dim:#} {position}{dim}{pointer}{dim:#}")?;
    if let Some(excerpt) = excerpt {
        excerpt_lines(out, &number, &excerpt, style)?;
    }
    writeln!(out, "{gutter} {dim}={dim:#} hint: {}\n", finding.hint)
}

/// A span of bytes within a text, and the number of its line.
#[derive(Clone, Copy)]
pub(crate) struct Spot<'t> {
    pub(crate) line: usize,
    pub(crate) text: &'t [u8],
    pub(crate) span: (usize, usize),
}

/// Prints an error or a warning at a place: its line, if it has one, and what to do about it.
pub(crate) fn placed(
    out: &mut impl Write,
    level: Level,
    title: &str,
    position: &str,
    spot: Option<Spot<'_>>,
    hint: &str,
) -> io::Result<()> {
    let (style, bold, dim) = (self::level(level), bold(), dim());
    writeln!(out, "{style}{}{style:#}{bold}: {title}{bold:#}", level.name())?;
    let number = spot.map(|spot| spot.line.to_string()).unwrap_or_default();
    let gutter = " ".repeat(number.len());
    writeln!(out, "{gutter}{dim}-->{dim:#} {position}")?;
    if let Some(spot) = spot {
        excerpt_lines(out, &number, &Excerpt::around(spot.text, spot.span), style)?;
    }
    writeln!(out, "{gutter} {dim}={dim:#} hint: {}\n", visible(hint))
}

fn excerpt_lines(out: &mut impl Write, number: &str, excerpt: &Excerpt, style: Style) -> io::Result<()> {
    if excerpt.line.trim().is_empty() {
        return Ok(());
    }
    let (dim, gutter) = (dim(), " ".repeat(number.len()));
    writeln!(out, "{dim}{number} |{dim:#} {}", excerpt.line)?;
    let carets = "^".repeat(excerpt.marked);
    writeln!(out, "{dim}{gutter} |{dim:#} {}{style}{carets}{style:#}", " ".repeat(excerpt.before))
}

fn finding_head(out: &mut impl Write, finding: &Finding) -> io::Result<()> {
    let (style, bold, word) = (level(finding.level), bold(), finding.level.name());
    writeln!(out, "{style}{word}[{}]{style:#}{bold}: {}{bold:#}", finding.clause.id, finding.message)
}

/// Prints a report on stderr. Stdout is for the document, which was not made.
pub(crate) fn findings(name: &str, source: &[u8], report: &Report) {
    let mut stderr = anstream::stderr().lock();
    // A failed write to stderr cannot be reported anywhere.
    let _ = self::report(&mut stderr, name, source, report, Verdict { good: false, strict: false });
}

/// Like [`findings`], but prints places only, because stderr may be a log that must not contain the document.
pub(crate) fn findings_by_place(name: &str, report: &Report) {
    let mut stderr = anstream::stderr().lock();
    for one in &report.findings {
        // A failed write to stderr cannot be reported anywhere.
        let _ = finding(&mut stderr, name, one);
    }
    let _ = close(&mut stderr, name, report, Verdict { good: false, strict: false });
}

/// Prints the errors of a document that was never written to a file, so that there are no lines to show.
pub(crate) fn findings_by_pointer(name: &str, report: &Report) {
    let mut stderr = anstream::stderr().lock();
    for finding in report.findings.iter().filter(|finding| finding.level == Level::Error) {
        let dim = dim();
        // A failed write to stderr cannot be reported anywhere.
        let _ = finding_head(&mut stderr, finding);
        let _ = writeln!(stderr, " {dim}-->{dim:#} {name}{dim}  {}{dim:#}", shown_pointer(&finding.pointer));
        let _ = writeln!(stderr, "  {dim}={dim:#} hint: {}\n", finding.hint);
    }
}

/// The part of a line that is shown.
struct Excerpt {
    line: String,
    /// Width of the text before the place, in columns.
    before: usize,
    /// Width of the place, in columns.
    marked: usize,
}

impl Excerpt {
    fn around(source: &[u8], (start, end): (usize, usize)) -> Excerpt {
        let start = character_start(source, start.min(source.len()));
        let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let earliest = start.saturating_sub(BEFORE_BYTES);
        let latest = source.len().min(start + AFTER_BYTES);
        let line_start = source[earliest..start].iter().rposition(is_break).map(|at| earliest + at + 1);
        let line_end = source[start..latest].iter().position(is_break).map(|at| start + at);
        let from = character_start(source, line_start.unwrap_or(earliest));
        let to = character_start(source, line_end.unwrap_or(latest)).max(start);
        let end = character_end(source, end.max(start)).min(to);
        let text = |from: usize, to: usize| visible(&String::from_utf8_lossy(&source[from..to]));
        let cut = |cut: bool| if cut { "..." } else { "" };
        let head = format!("{}{}", cut(line_start.is_none() && earliest > 0), text(from, start));
        let marked = text(start, end);
        let tail = format!("{}{}", text(end, to), cut(line_end.is_none() && latest < source.len()));
        Excerpt { line: format!("{head}{marked}{tail}"), before: head.width(), marked: marked.width().max(1) }
    }
}

/// Shows a pointer, or another name made of the names of members. It may be as long as a document and hold any
/// character.
pub(crate) fn shown_pointer(pointer: &str) -> String {
    visible(&shortened(pointer, POINTER_BYTES))
}

/// Returns the beginning of a long text.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = (0..=bytes_max).rev().find(|&end| text.is_char_boundary(end)).unwrap_or(0);
    format!("{}...", &text[..end])
}

/// Longest character of UTF-8, in bytes.
const CHARACTER_BYTES_MAX: usize = 4;

fn continues_character(source: &[u8], at: usize) -> bool {
    source.get(at).is_some_and(|byte| byte & 0xc0 == 0x80)
}

/// Returns the offset of the first byte of the character that the byte at `offset` belongs to.
fn character_start(source: &[u8], offset: usize) -> usize {
    let mut at = offset;
    while at > 0 && continues_character(source, at) && offset - at < CHARACTER_BYTES_MAX {
        at -= 1;
    }
    at
}

/// Returns the offset after the character that the byte before `offset` belongs to.
fn character_end(source: &[u8], offset: usize) -> usize {
    let mut at = offset;
    while continues_character(source, at) && at - offset < CHARACTER_BYTES_MAX {
        at += 1;
    }
    at
}

/// Makes text safe to show on one line: a tab becomes a space, and a character without a width of its own becomes a
/// middle dot.
pub(crate) fn visible(text: &str) -> String {
    let shown = |character: char| match character {
        '\t' => ' ',
        character if is_harmless(character) => character,
        _ => '\u{b7}',
    };
    text.chars().map(shown).collect()
}

/// Whether a terminal only displays this character.
pub(crate) fn is_harmless(character: char) -> bool {
    // Marks that change the direction of the text after them.
    let turns =
        matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    !turns && !character.is_control() && character.width().is_some()
}

pub(crate) fn cannot_read(name: &str, error: &anyhow::Error) {
    say_error(&format!("{}: {error:#}", visible(name)), None);
}

/// Prints why something was not done, and what to do about it.
pub(crate) fn refused(message: &str, hint: &str) {
    say_error(&visible(message), Some(hint));
}

/// Like [`refused`], with a message of several lines that can be shown as it is.
pub(crate) fn problem(message: &str, hint: &str) {
    say_error(message, Some(hint));
}

/// Prints an error that ends the program.
pub(crate) fn error(error: &anyhow::Error) {
    if let Some(invalid) = error.downcast_ref::<Invalid>() {
        // A failed write to stderr cannot be reported anywhere.
        let _ = invalid.print(&mut anstream::stderr().lock());
        return;
    }
    if let Some(failed) = error.downcast_ref::<Failed>() {
        let message: Vec<String> = failed.to_string().lines().map(visible).collect();
        return say_error(&message.join("\n"), failed.hint().map(visible).as_deref());
    }
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    say_error(&causes.join("\n  caused by: "), None);
}

/// Reports a panic. Its message may hold content, so only its place is printed.
pub(crate) fn panicked(location: Option<&Location<'_>>) {
    let location = location.map_or_else(String::new, |location| format!(" at {location}"));
    say_error(&format!("internal error{location}"), Some("this is a mistake of ours; please report it with this line"));
}

/// Prints a remark on stderr, beside the data on stdout.
pub(crate) fn note(text: &str) {
    fold::say(text, 0);
}

/// Prints a remark that ends in a command. A command that does not fit beside the words has a line of its own, and is
/// never broken into lines: it is there to be copied.
pub(crate) fn command(words: &str, command: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{}", fold::ending_whole(words, command));
}

/// Prints an error on stderr. A failed write is ignored, because it cannot be reported anywhere.
fn say_error(message: &str, hint: Option<&str>) {
    let style = level(Level::Error);
    let mut stderr = anstream::stderr().lock();
    let _ = writeln!(stderr, "{style}error{style:#}: {message}");
    if let Some(hint) = hint {
        let _ = writeln!(stderr, "{}", fold::for_stderr(&format!("hint: {hint}"), "hint: ".len()));
    }
}
