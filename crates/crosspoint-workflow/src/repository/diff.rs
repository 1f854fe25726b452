//! What a whole run changed, as one difference that `git apply` and `patch -p1` understand.
//!
//! For each file it compares what was there before the run first wrote it with what the run last wrote. Changes that
//! another program made are not in it. One file at a time is in memory.
//!
//! The work has one bound for the whole run, whatever it changed. A file is not read where the room of the output
//! cannot take it, or where as many bytes as allowed were compared already; it is only named. Where not even the name
//! has room, that file and those after it are only counted. And the search for short differences has one deadline:
//! beyond it the lines of a file are shown as replaced, which is right but longer. All of this is said in the output.

mod hunk;
mod quote;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use self::quote::quoted;
use super::journal::Extent;
use super::pack;
use super::record::{Record, Side, Stage};
use super::spelling;

/// Largest file that is compared line by line, in bytes. The difference of a longer one is not read by a person.
const COMPARED_BYTES_MAX: u64 = 4 << 20;

/// Bytes of all files that are compared, before and after. Several times what fits in an output that a person reads.
const COMPARED_TOTAL_BYTES_MAX: u64 = 128 << 20;

/// Time in which short differences are searched for, in all files together. A person waits for it.
const SEARCH_TIME_MAX: Duration = Duration::from_secs(5);

/// Number of bytes at the beginning of a file that are searched for a NUL, which tells a binary file. Git does the
/// same.
const SEARCHED_BYTES: usize = 8_000;

/// Room that is left for the line that says how many files are only counted, in bytes. With the largest number it has
/// fewer.
const LAST_LINE_BYTES: u64 = 100;

/// What a difference holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that differ, shown or not. One that is only named or counted because of a limit was not compared, and may
    /// be as it was.
    pub files: u64,
    /// Lines that were added in the files shown.
    pub lines_added: u64,
    /// Lines that were removed in the files shown.
    pub lines_removed: u64,
    /// Files that are only named or counted: they are binary, too long, or beyond a limit of the difference.
    pub not_shown: u64,
}

/// One file of the run: where its contents are.
#[derive(Clone, Copy)]
struct Touched {
    /// Nothing where the run created the file.
    before: Option<(u32, Extent)>,
    after: (u32, Extent),
}

/// Why the lines of a file are not shown.
#[derive(Clone, Copy)]
enum Hidden {
    Binary,
    TooLong,
    NoRoom,
    TooMuch,
}

impl Hidden {
    fn text(self) -> &'static str {
        match self {
            Hidden::Binary => "binary",
            Hidden::TooLong => "too long to compare",
            Hidden::NoRoom => "beyond the limit of this output",
            Hidden::TooMuch => "beyond the bytes that are compared",
        }
    }
}

/// What the difference of a run may still cost.
struct Bounds {
    /// Bytes of the output, the last line included.
    room: u64,
    /// Bytes of files that are compared.
    compared_bytes: u64,
    /// When the search for short differences ends.
    deadline: Instant,
}

impl Bounds {
    /// Whether there is room for so many bytes, and for the last line after them.
    fn have_room(&self, bytes: u64) -> bool {
        bytes <= self.room.saturating_sub(LAST_LINE_BYTES)
    }
}

/// Writes the difference of a whole run, of at most `bytes_max` bytes.
///
/// A file that is not shown is named in a line that programs which apply the difference pass over. As soon as a name
/// has no room either, the rest is counted in the last line. Writes nothing where the run has no record.
pub fn diff(record: &Path, out: &mut impl Write, bytes_max: u64) -> io::Result<Summary> {
    let deadline = Instant::now() + SEARCH_TIME_MAX;
    within(record, out, Bounds { room: bytes_max, compared_bytes: COMPARED_TOTAL_BYTES_MAX, deadline })
}

fn within(record: &Path, out: &mut impl Write, mut bounds: Bounds) -> io::Result<Summary> {
    let mut summary = Summary::default();
    if !record.exists() {
        return Ok(summary);
    }
    let record = Record::open(record).map_err(io::Error::other)?;
    let mut files = touched(&record)?.into_iter();
    for (path, touched) in files.by_ref() {
        let Some(text) = file(&record, &path, touched, &mut bounds, &mut summary)? else { continue };
        if !bounds.have_room(text.len() as u64) {
            // What differs and has no room is a name, so it is counted as not shown already.
            count(1 + files.len() as u64, out, &bounds)?;
            break;
        }
        bounds.room -= text.len() as u64;
        out.write_all(&text)?;
    }
    summary.files += files.len() as u64;
    summary.not_shown += files.len() as u64;
    Ok(summary)
}

/// Writes the last line. It is left out where all that is allowed is less than a line.
fn count(files: u64, out: &mut impl Write, bounds: &Bounds) -> io::Result<()> {
    let files = if files == 1 { "1 more file is".to_owned() } else { format!("{files} more files are") };
    let line = format!("# {files} not shown ({})\n", Hidden::NoRoom.text());
    if line.len() as u64 <= bounds.room { out.write_all(line.as_bytes()) } else { Ok(()) }
}

fn touched(record: &Record) -> io::Result<BTreeMap<String, Touched>> {
    let mut files: BTreeMap<String, Touched> = BTreeMap::new();
    for (step, stage) in record.steps().map_err(io::Error::other)? {
        if stage != Stage::Done {
            continue;
        }
        let Some(journal) = record.journal(step, stage).map_err(io::Error::other)? else { continue };
        for entry in &journal.entries {
            let Some(after) = entry.after.map(|extent| (step, extent)) else { continue };
            let before = entry.before.map(|extent| (step, extent));
            let path = spelling::normal(&entry.path);
            files.entry(path).and_modify(|file| file.after = after).or_insert(Touched { before, after });
        }
    }
    Ok(files)
}

/// Returns the difference of one file, or `None` where it is in the end as it was.
fn file(
    record: &Record,
    path: &str,
    touched: Touched,
    bounds: &mut Bounds,
    summary: &mut Summary,
) -> io::Result<Option<Vec<u8>>> {
    let mut text = header(path, touched.before.is_none(), touched.after.1.length == 0);
    if let Some(why) = unread(touched, text.len() as u64, bounds) {
        return Ok(Some(named(path, why, summary)));
    }
    let read = |side, (step, extent)| pack::read(record, step, side, extent);
    let before = touched.before.map(|at| read(Side::Before, at)).transpose()?;
    let after = read(Side::After, touched.after)?;
    if before.as_deref() == Some(after.as_slice()) {
        return Ok(None);
    }
    if is_binary(&after) || before.as_deref().is_some_and(is_binary) {
        return Ok(Some(named(path, Hidden::Binary, summary)));
    }
    let lines = hunk::write(&mut text, before.as_deref().unwrap_or_default(), &after, bounds.deadline);
    if before.is_some() && Instant::now() > bounds.deadline {
        let note = format!("# not compared to the end: {} (the time for comparing is over)\n", quoted("", path));
        text.splice(0..0, note.into_bytes());
    }
    if !bounds.have_room(text.len() as u64) {
        return Ok(Some(named(path, Hidden::NoRoom, summary)));
    }
    summary.files += 1;
    summary.lines_added += lines.added;
    summary.lines_removed += lines.removed;
    Ok(Some(text))
}

/// Returns why a file is not even read. Otherwise counts its bytes as compared.
fn unread(touched: Touched, header_bytes: u64, bounds: &mut Bounds) -> Option<Hidden> {
    let (before, after) = (touched.before.map(|(_, extent)| extent), touched.after.1);
    if before.into_iter().chain([after]).any(|extent| !extent.kept || extent.length > COMPARED_BYTES_MAX) {
        return Some(Hidden::TooLong);
    }
    let before_bytes = before.map_or(0, |extent| extent.length);
    // A difference is at least as long as its header and what the file grew or shrank by.
    if !bounds.have_room(header_bytes + after.length.abs_diff(before_bytes)) {
        return Some(Hidden::NoRoom);
    }
    match bounds.compared_bytes.checked_sub(before_bytes + after.length) {
        Some(left) => bounds.compared_bytes = left,
        None => return Some(Hidden::TooMuch),
    }
    None
}

fn is_binary(content: &[u8]) -> bool {
    content[..content.len().min(SEARCHED_BYTES)].contains(&0)
}

fn named(path: &str, why: Hidden, summary: &mut Summary) -> Vec<u8> {
    summary.files += 1;
    summary.not_shown += 1;
    format!("# not shown: {} ({})\n", quoted("", path), why.text()).into_bytes()
}

fn header(path: &str, is_new: bool, is_empty: bool) -> Vec<u8> {
    let (old, new) = (quoted("a/", path), quoted("b/", path));
    let mut header = format!("diff --git {old} {new}\n");
    if is_new {
        // Agents cannot ask for another mode.
        header.push_str("new file mode 100644\n");
    }
    // A new file without content has no lines to show.
    if !(is_new && is_empty) {
        // A tab ends a name with a space in it, which would end there otherwise.
        let end = if path.contains(' ') && !new.starts_with('"') { "\t" } else { "" };
        let old = if is_new { "/dev/null".to_owned() } else { format!("{old}{end}") };
        header.push_str(&format!("--- {old}\n+++ {new}{end}\n"));
    }
    header.into_bytes()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::{Change, Operation, Repository, Rules};
    use super::*;

    /// A repository whose files `a` to `c` were updated in two of their five lines, and the record of that.
    fn updated(name: &str) -> PathBuf {
        let scratch = std::env::temp_dir().join(format!("crosspoint-diff-{name}-{}", std::process::id()));
        std::fs::create_dir_all(scratch.join("root")).expect("it can be made");
        let update = |path: &str| {
            std::fs::write(scratch.join("root").join(path), "1\n2\n3\n4\n5\n").expect("it can be written");
            Change { path: path.to_owned(), operation: Operation::Update, content: "1\nTWO\n3\nFOUR\n5\n".into() }
        };
        let changes = ["a", "b", "c"].map(update);
        let repository = Repository::open(&scratch.join("root")).expect("it is there");
        repository.apply(&scratch.join("record"), 1, &changes, &Rules::default()).expect("it is applied");
        scratch
    }

    fn shown(scratch: &Path, bounds: Bounds) -> (String, Summary) {
        let mut text = Vec::new();
        let summary = within(&scratch.join("record"), &mut text, bounds).expect("it can be written");
        std::fs::remove_dir_all(scratch).expect("it can be removed");
        (String::from_utf8(text).expect("it is text"), summary)
    }

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(3600)
    }

    #[test]
    fn the_bytes_that_are_compared_have_one_bound_for_all_files() {
        let scratch = updated("bytes");
        // Each file has 10 bytes before and 15 after.
        let bounds = Bounds { room: 1 << 20, compared_bytes: 25 + 24, deadline: later() };
        let (text, summary) = shown(&scratch, bounds);
        assert_eq!(summary, Summary { files: 3, lines_added: 2, lines_removed: 2, not_shown: 2 });
        assert!(text.ends_with("# not shown: c (beyond the bytes that are compared)\n"), "{text}");
    }

    #[test]
    fn files_that_the_output_has_no_room_for_are_not_read() {
        let scratch = updated("room");
        // Reading any content would be an error.
        std::fs::remove_file(scratch.join("record/step-1.after")).expect("it is there");
        let bounds = Bounds { room: LAST_LINE_BYTES + 30, compared_bytes: 1 << 20, deadline: later() };
        let (text, summary) = shown(&scratch, bounds);
        assert_eq!((summary.files, summary.not_shown), (3, 3));
        assert_eq!(text, "# 3 more files are not shown (beyond the limit of this output)\n");
    }

    #[test]
    fn beyond_the_one_deadline_lines_are_shown_as_replaced_and_this_is_said() {
        let scratch = updated("time");
        let bounds = Bounds { room: 1 << 20, compared_bytes: 1 << 20, deadline: Instant::now() };
        let (text, summary) = shown(&scratch, bounds);
        assert_eq!((summary.files, summary.not_shown), (3, 0));
        assert!(
            text.starts_with("# not compared to the end: a (the time for comparing is over)\ndiff --git"),
            "{text}"
        );
        assert_eq!(text.matches("# not compared to the end").count(), 3, "{text}");
        // The line 3 is in both, and is found only by a search.
        assert_eq!(text.matches("-2\n-3\n-4\n+TWO\n+3\n+FOUR\n").count(), 3, "{text}");
    }
}
