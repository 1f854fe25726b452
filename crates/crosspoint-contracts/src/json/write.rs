//! Writing strings as JSON.
//!
//! Most of what is written are slices of what was read. Only text that is made up here, or joined from several
//! pieces, needs quotes and escapes anew.

/// The text as a JSON string, quotes included. Only what JSON demands is escaped; other characters stay as they are.
pub fn quoted(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    push_quoted(text, &mut json);
    json
}

/// Appends the text as a JSON string.
pub fn push_quoted(text: &str, json: &mut String) {
    json.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(must_be_escaped) {
        let (plain, special) = rest.split_at(at);
        json.push_str(plain);
        push_escape(special.as_bytes()[0], json);
        // What must be escaped is ASCII and so one byte long.
        rest = &special[1..];
    }
    json.push_str(rest);
    json.push('"');
}

fn must_be_escaped(byte: u8) -> bool {
    byte == b'"' || byte == b'\\' || byte < 0x20
}

fn push_escape(byte: u8, json: &mut String) {
    match byte {
        b'"' => json.push_str("\\\""),
        b'\\' => json.push_str("\\\\"),
        b'\n' => json.push_str("\\n"),
        b'\r' => json.push_str("\\r"),
        b'\t' => json.push_str("\\t"),
        0x08 => json.push_str("\\b"),
        0x0c => json.push_str("\\f"),
        other => json.push_str(&format!("\\u{other:04x}")),
    }
}
