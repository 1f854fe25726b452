//! Notes of one agent, which the next one is told (WF-6).

/// Most notes that are handed on.
const NOTES_MAX: usize = 1_000;

/// Most bytes of notes that are handed on: they are stored with every stage, and an agent reads them every time.
const NOTES_BYTES_MAX: usize = 64 * 1024;

/// Bytes that are kept free for the sentence that says how many notes were left out.
const SENTENCE_BYTES_MAX: usize = 128;

/// Returns the notes that are handed on. If they are too many, the last ones are kept, because agents write what
/// matters most at the end; a sentence says how many were left out. Notes that were kept before are kept again.
pub fn kept(notes: &[String]) -> Vec<String> {
    if last_within(notes, NOTES_MAX, NOTES_BYTES_MAX) == notes.len() {
        return notes.to_vec();
    }
    let count = last_within(notes, NOTES_MAX - 1, NOTES_BYTES_MAX - SENTENCE_BYTES_MAX);
    let (left_out, kept) = notes.split_at(notes.len() - count);
    sentence(left_out.len()).into_iter().chain(kept.iter().cloned()).collect()
}

/// Returns how many of the last notes are no more than these.
fn last_within(notes: &[String], count_max: usize, bytes_max: usize) -> usize {
    let mut room = bytes_max;
    let fits = |note: &&String| room.checked_sub(note.len()).map(|rest| room = rest).is_some();
    notes.iter().rev().take(count_max).take_while(fits).count()
}

fn sentence(left_out: usize) -> Option<String> {
    match left_out {
        0 => None,
        1 => Some("1 earlier note was left out, because the notes were too long.".to_owned()),
        more => Some(format!("{more} earlier notes were left out, because the notes were too long.")),
    }
}

/// Returns a text of at most so many bytes. A text that is cut ends in an ellipsis.
pub(super) fn cut_to(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = text.floor_char_boundary(bytes_max.saturating_sub("...".len()));
    format!("{}...", &text[..end])
}
