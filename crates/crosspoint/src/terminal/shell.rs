//! Commands as a user can paste them into a shell.

use std::ffi::OsStr;
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

use super::render::is_harmless;

/// Returns a command as one line. A shell that is given the line runs exactly these words.
pub(crate) fn line<'w>(words: impl IntoIterator<Item = &'w OsStr>) -> String {
    words.into_iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Returns a word as a shell reads it: bare where that is safe, else in quotes. Characters that would move the cursor,
/// and bytes that are no text, are written in the form `$'\033'`, which the shells in use today read.
pub(crate) fn word(word: &OsStr) -> String {
    match word.to_str() {
        Some(text) if !text.is_empty() && text.chars().all(is_bare) => text.to_owned(),
        Some(text) if text.chars().all(is_harmless) => format!("'{}'", text.replace('\'', r"'\''")),
        Some(_) | None => escaped(word.as_bytes()),
    }
}

/// Whether no shell gives the character a meaning, at any place of a word.
fn is_bare(character: char) -> bool {
    character.is_ascii_alphanumeric() || "-_./:,@%+".contains(character)
}

fn escaped(bytes: &[u8]) -> String {
    let mut quoted = "$'".to_owned();
    for &byte in bytes {
        // Writing to a text cannot fail.
        let _ = match byte {
            b'\'' | b'\\' => write!(quoted, "\\{}", char::from(byte)),
            b' '..=b'~' => write!(quoted, "{}", char::from(byte)),
            // Three octal digits: unlike `\x`, they cannot swallow a digit that follows.
            _ => write!(quoted, "\\{byte:03o}"),
        };
    }
    quoted + "'"
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::os::unix::ffi::OsStringExt;
    use std::process::Command;

    use super::*;

    /// The judge is a shell: it must be given back the very bytes.
    #[test]
    fn a_shell_reads_the_words_that_were_quoted() {
        let all_bytes = (1..=255).collect::<Vec<u8>>();
        let words: Vec<OsString> = [
            &b"plain-word_1.0/x:y,z@%+"[..],
            b"",
            b"two words",
            b"it's",
            b"$HOME `id` \"x\" \\ !! * ? ~ # ; & | > <",
            b"--flag=a b",
            b"~",
            b"a=b",
            "gr\u{fc}\u{df}e \u{202e}".as_bytes(),
            b"line\nbreak\x1b[31m7",
            &all_bytes,
        ]
        .into_iter()
        .map(|bytes| OsString::from_vec(bytes.to_vec()))
        .collect();
        let line = line(words.iter().map(OsString::as_os_str));
        assert!(line.chars().all(is_harmless), "{line}");
        let printed = Command::new("bash").arg("-c").arg(format!("printf '%s\\0' {line}")).output().expect("it runs");
        let expected = words.iter().flat_map(|word| [word.as_bytes(), &[0]].concat()).collect::<Vec<u8>>();
        assert_eq!(printed.stdout, expected, "{line}");
        assert!(line.starts_with("plain-word_1.0/x:y,z@%+ '' 'two words' 'it'\\''s' "), "{line}");
    }
}
