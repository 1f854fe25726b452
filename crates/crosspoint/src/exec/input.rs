//! A program's stdin: its input on one line, then the end, or the answers to its questions, a line each.
//!
//! It is written by a task of its own, because a program may print before it reads, or never read. A program that does
//! not read, or closes its stdin, breaks no rule.

use bytes::Bytes;
use crosspoint_contracts::content::Body;
use tokio::io::AsyncWriteExt;
use tokio::net::unix::pipe;
use tokio::sync::mpsc;

/// Writes until the program takes no more, or no more can come.
pub(super) async fn write(mut stdin: pipe::Sender, input: Body, mut answers: mpsc::UnboundedReceiver<Body>) {
    let mut next = Some(input);
    while let Some(value) = next.take() {
        let line = on_one_line(value.bytes());
        if stdin.write_all(&line).await.is_err() || stdin.write_all(b"\n").await.is_err() {
            return;
        }
        drop((value, line));
        next = answers.recv().await;
    }
}

/// Returns JSON text on one line. Line breaks within strings are escaped, so those that are found stand between values
/// and mean nothing. Everything else stays as it was spelled.
fn on_one_line(json: &Bytes) -> Bytes {
    let is_break = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if !json.iter().any(is_break) {
        return json.clone();
    }
    json.iter().filter(|byte| !is_break(byte)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_go_and_everything_else_stays() {
        let line = |json: &'static str| on_one_line(&Bytes::from_static(json.as_bytes()));
        assert_eq!(line("{\r\n  \"a\\n\": 1.50,\n\t\"b\": [\n]\r}"), "{  \"a\\n\": 1.50,\t\"b\": []}");
        assert_eq!(line("\"text\""), "\"text\"");
    }
}
