//! Writes events as bytes.

/// The name of an event would end its own line and begin another field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event's name cannot hold a line break")]
pub struct LineBreak;

/// Appends one event: its name, its sequence number where it has one, and its data, with one `data:` line for each line
/// of the data.
///
/// # Errors
/// Fails if the name holds a line break. Then nothing is appended.
pub fn event(out: &mut Vec<u8>, name: &str, id: Option<u64>, data: &str) -> Result<(), LineBreak> {
    if name.contains(['\r', '\n']) {
        return Err(LineBreak);
    }
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.push(b'\n');
    if let Some(id) = id {
        out.extend_from_slice(format!("id: {id}\n").as_bytes());
    }
    for line in lines(data) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
    }
    out.push(b'\n');
    Ok(())
}

/// Appends a comment, which only shows that the stream is alive.
pub fn comment(out: &mut Vec<u8>) {
    out.extend_from_slice(b":\n\n");
}

/// Splits at every line end that a reader knows: CRLF, LF and CR. In JSON these stand only between tokens, where all
/// white space is the same.
fn lines(data: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(data);
    std::iter::from_fn(move || {
        let text = rest?;
        let Some(end) = text.find(['\r', '\n']) else {
            rest = None;
            return Some(text);
        };
        let after = &text[end..];
        let width = if after.starts_with("\r\n") { 2 } else { 1 };
        rest = Some(&after[width..]);
        Some(&text[..end])
    })
}
