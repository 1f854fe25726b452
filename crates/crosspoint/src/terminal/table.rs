//! Tables for people: aligned, as wide as necessary, and no wider than the terminal.

use std::io::{self, IsTerminal, Write};

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::terminal::render;

/// Narrowest width to which a column is cut.
const WIDTH_MIN: usize = 6;
const GAP: usize = 2;

/// A column: its head, and what happens to it in a narrow terminal. Ids stay whole, because people paste them.
pub(crate) struct Column {
    pub(crate) head: &'static str,
    pub(crate) fit: Fit,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// Always whole.
    Whole,
    /// Cut if necessary.
    Cut,
    /// Left out if it does not fit.
    Spare,
}

/// Prints rows under their heads. Cells may hold any text: they are shown through `visible`.
pub(crate) fn print(out: &mut impl Write, columns: &[Column], rows: &[Vec<String>]) -> io::Result<()> {
    let rows: Vec<Vec<String>> =
        rows.iter().map(|row| row.iter().map(|cell| render::visible(cell)).collect()).collect();
    let widths = widths(columns, &rows, terminal_width());
    let heads: Vec<String> = columns.iter().map(|column| column.head.to_owned()).collect();
    let bold = render::bold();
    writeln!(out, "{bold}{}{bold:#}", line(&heads, &widths))?;
    rows.iter().try_for_each(|row| writeln!(out, "{}", line(row, &widths)))
}

/// The time since `at`, in its largest unit.
pub(crate) fn age(at: jiff::Timestamp, now: jiff::Timestamp) -> String {
    let seconds = now.duration_since(at).as_secs().max(0);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// The width of the terminal. `None` if stdout is no terminal, in which case nothing is cut.
fn terminal_width() -> Option<usize> {
    let width = io::stdout().is_terminal().then(terminal_size::terminal_size).flatten();
    width.map(|(terminal_size::Width(width), _)| usize::from(width))
}

fn widths(columns: &[Column], rows: &[Vec<String>], room: Option<usize>) -> Vec<usize> {
    let widest = |(index, column): (usize, &Column)| {
        let cells = rows.iter().filter_map(|row| row.get(index)).map(|cell| cell.width());
        cells.max().unwrap_or(0).max(column.head.width())
    };
    let mut widths: Vec<usize> = columns.iter().enumerate().map(widest).collect();
    let Some(room) = room else { return widths };
    let too_wide = |widths: &[usize]| {
        let shown = widths.iter().filter(|width| **width > 0).count();
        widths.iter().sum::<usize>() + GAP * shown.saturating_sub(1) > room
    };
    for (index, column) in columns.iter().enumerate() {
        if column.fit == Fit::Spare && too_wide(&widths) {
            widths[index] = 0;
        }
    }
    // The widest column that may be cut gives way first.
    while too_wide(&widths) {
        let cut = (0..columns.len()).filter(|&index| columns[index].fit == Fit::Cut && widths[index] > WIDTH_MIN);
        let Some(widest) = cut.max_by_key(|&index| widths[index]) else { break };
        widths[widest] -= 1;
    }
    widths
}

fn line(cells: &[String], widths: &[usize]) -> String {
    let mut line = String::new();
    for (cell, &width) in cells.iter().zip(widths).filter(|(_, width)| **width > 0) {
        let cell = cut(cell, width);
        line.push_str(&cell);
        line.push_str(&" ".repeat(width.saturating_sub(cell.width()) + GAP));
    }
    line.trim_end().to_owned()
}

/// Cuts a text that is too wide, and marks the cut with an ellipsis.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut shown = String::new();
    for character in text.chars() {
        if shown.width() + character.width().unwrap_or(0) + 1 > width {
            break;
        }
        shown.push(character);
    }
    shown + "\u{2026}"
}

/// Returns how wide the lines of a table are in a terminal of this width.
#[cfg(test)]
pub(crate) fn width_in(columns: &[Column], rows: &[Vec<String>], room: usize) -> usize {
    let widths = widths(columns, rows, Some(room));
    rows.iter().map(|row| line(row, &widths).width()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_cut_gives_way_and_ids_do_not() {
        let columns = [("ID", Fit::Whole), ("AGENT", Fit::Spare), ("WORK", Fit::Cut)];
        let columns = columns.map(|(head, fit)| Column { head, fit });
        let rows = vec![vec!["0199d3a2-8b1e".to_owned(), "echo".to_owned(), "a rather long name of work".to_owned()]];
        assert_eq!(widths(&columns, &rows, None), [13, 5, 26]);
        assert_eq!(widths(&columns, &rows, Some(48)), [13, 5, 26]);
        assert_eq!(widths(&columns, &rows, Some(47)), [13, 0, 26]);
        assert_eq!(widths(&columns, &rows, Some(25)), [13, 0, 10]);
        assert_eq!(widths(&columns, &rows, Some(5)), [13, 0, WIDTH_MIN]);
        assert_eq!(line(&rows[0], &[13, 0, 10]), "0199d3a2-8b1e  a rather \u{2026}");
    }
}
