//! The lines in which two contents differ, with the lines around them.

use std::time::Instant;

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices_deadline, group_diff_ops};

/// Number of equal lines shown around each difference. Programs that apply it find the place by them.
const CONTEXT_LINES: usize = 3;

/// Numbers of lines.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lines {
    pub(super) added: u64,
    pub(super) removed: u64,
}

/// Writes all differences of two contents. After the deadline shorter differences are no longer searched for. What is
/// found by then is right, only longer.
pub(super) fn write(out: &mut Vec<u8>, old: &[u8], new: &[u8], deadline: Instant) -> Lines {
    let old: Vec<&[u8]> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let new: Vec<&[u8]> = new.split_inclusive(|byte| *byte == b'\n').collect();
    let differences = capture_diff_slices_deadline(Algorithm::Myers, &old, &new, Some(deadline));
    let mut lines = Lines::default();
    for group in group_diff_ops(differences, CONTEXT_LINES) {
        write_header(out, &group);
        for difference in &group {
            write_difference(out, difference, &old, &new, &mut lines);
        }
    }
    lines
}

fn write_header(out: &mut Vec<u8>, group: &[DiffOp]) {
    let (Some(first), Some(last)) = (group.first(), group.last()) else { return };
    let old = range(first.old_range().start, last.old_range().end);
    let new = range(first.new_range().start, last.new_range().end);
    out.extend_from_slice(format!("@@ -{old} +{new} @@\n").as_bytes());
}

/// Lines are counted from one, and an empty range names the line before it.
fn range(start: usize, end: usize) -> String {
    match end - start {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        length => format!("{},{length}", start + 1),
    }
}

fn write_difference(out: &mut Vec<u8>, difference: &DiffOp, old: &[&[u8]], new: &[&[u8]], lines: &mut Lines) {
    let (removed, added) = (&old[difference.old_range()], &new[difference.new_range()]);
    if difference.tag() == DiffTag::Equal {
        return removed.iter().for_each(|line| write_line(out, b' ', line));
    }
    lines.removed += removed.len() as u64;
    lines.added += added.len() as u64;
    removed.iter().for_each(|line| write_line(out, b'-', line));
    added.iter().for_each(|line| write_line(out, b'+', line));
}

fn write_line(out: &mut Vec<u8>, mark: u8, line: &[u8]) {
    out.push(mark);
    out.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        out.extend_from_slice(b"\n\\ No newline at end of file\n");
    }
}
