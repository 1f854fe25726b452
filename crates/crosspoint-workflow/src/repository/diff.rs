//! What a whole run changed, as one difference that `git apply` and `patch -p1` understand.
//!
//! For each file it compares what was there before the run first wrote it with what the run last wrote. Changes that
//! another program made are not in it. One file at a time is in memory.

mod hunk;
mod quote;

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use self::quote::quoted;
use super::journal::Extent;
use super::pack;
use super::record::{Record, Side, Stage};
use super::spelling;

/// Largest file that is compared line by line, in bytes. The difference of a longer one is not read by a person.
const COMPARED_BYTES_MAX: u64 = 4 << 20;

/// Number of bytes at the beginning of a file that are searched for a NUL, which tells a binary file. Git does the
/// same.
const SEARCHED_BYTES: usize = 8_000;

/// What a difference holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Files that differ, shown or not.
    pub files: u64,
    /// Lines that were added in the files shown.
    pub lines_added: u64,
    /// Lines that were removed in the files shown.
    pub lines_removed: u64,
    /// Files that are only named: they are binary, too long, or beyond the limit of the output.
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
}

impl Hidden {
    fn text(self) -> &'static str {
        match self {
            Hidden::Binary => "binary",
            Hidden::TooLong => "too long to compare",
            Hidden::NoRoom => "beyond the limit of this output",
        }
    }
}

/// Writes the difference of a whole run, of at most `bytes_max` bytes and a line for each file beyond them.
///
/// A file that is not shown is named in a line that programs which apply the difference pass over. Writes nothing
/// where the run has no record.
pub fn diff(record: &Path, out: &mut impl Write, bytes_max: u64) -> io::Result<Summary> {
    let mut summary = Summary::default();
    if !record.exists() {
        return Ok(summary);
    }
    let record = Record::open(record).map_err(io::Error::other)?;
    let mut room = bytes_max;
    for (path, touched) in touched(&record)? {
        if let Some(text) = file(&record, &path, touched, room, &mut summary)? {
            room = room.saturating_sub(text.len() as u64);
            out.write_all(&text)?;
        }
    }
    Ok(summary)
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
    room: u64,
    summary: &mut Summary,
) -> io::Result<Option<Vec<u8>>> {
    let both = [touched.before, Some(touched.after)].into_iter().flatten();
    if both.into_iter().any(|(_, extent)| !extent.kept || extent.length > COMPARED_BYTES_MAX) {
        return Ok(Some(named(path, Hidden::TooLong, summary)));
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
    let mut text = header(path, before.is_none(), after.is_empty());
    let lines = hunk::write(&mut text, before.as_deref().unwrap_or_default(), &after);
    if text.len() as u64 > room {
        return Ok(Some(named(path, Hidden::NoRoom, summary)));
    }
    summary.files += 1;
    summary.lines_added += lines.added;
    summary.lines_removed += lines.removed;
    Ok(Some(text))
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
