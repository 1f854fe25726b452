//! Names of files, written as git writes them.

/// Returns a name as it is, or in double quotes with escapes where it has a control character, a quote, a backslash or
/// a byte beyond ASCII.
pub(super) fn quoted(prefix: &str, path: &str) -> String {
    if path.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\') {
        return format!("{prefix}{path}");
    }
    let escaped: String = path.bytes().map(escape).collect();
    format!("\"{prefix}{escaped}\"")
}

fn escape(byte: u8) -> String {
    match byte {
        b'"' => "\\\"".to_owned(),
        b'\\' => "\\\\".to_owned(),
        0x07 => "\\a".to_owned(),
        0x08 => "\\b".to_owned(),
        b'\t' => "\\t".to_owned(),
        b'\n' => "\\n".to_owned(),
        0x0b => "\\v".to_owned(),
        0x0c => "\\f".to_owned(),
        b'\r' => "\\r".to_owned(),
        b' '..=b'~' => char::from(byte).into(),
        other => format!("\\{other:03o}"),
    }
}
