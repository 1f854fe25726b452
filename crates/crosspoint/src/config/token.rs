//! Tokens, which are in files of their own.

use std::fmt;
use std::fs;
use std::path::Path;

use super::agent::Reading;
use super::file::File;

/// Longest token, in bytes. A longer file holds something else.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// The key that names the file of a token.
pub(super) const TOKEN_FILE: &str = "token_file";

/// A secret, which never prints itself.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Token(String);

impl Token {
    /// Returns the secret, for the one place that presents it.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether this is the secret. Where the two differ does not show in the time that it takes (MSG-13.7).
    pub(crate) fn is(&self, presented: &str) -> bool {
        let (own, presented) = (self.0.as_bytes(), presented.as_bytes());
        let differing = own.iter().zip(presented).fold(0, |differing, (one, other)| differing | (one ^ other));
        std::hint::black_box(differing) == 0 && own.len() == presented.len()
    }

    /// Reads the file of a token, or returns what is wrong with it.
    fn of_file(path: &Path) -> Result<Token, &'static str> {
        let text = fs::metadata(path).and_then(|found| {
            if found.len() > TOKEN_BYTES_MAX { Ok(None) } else { fs::read_to_string(path).map(Some) }
        });
        let text = text.map_err(|_| "the file cannot be read")?.ok_or("the file is too long for a token")?;
        let token = text.trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err("the file does not hold a token: one line of visible ASCII characters");
        }
        Ok(Token(token.to_owned()))
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

/// Reads the key and the file that it names. A relative path is relative to the configuration file.
pub(super) fn read(table: &Reading<'_>, file: &mut File) -> (Option<String>, Option<Token>) {
    let Some(path) = table.text(file, TOKEN_FILE, "write the path of a file in quotes") else { return (None, None) };
    let beside = file.source.path.parent().unwrap_or(Path::new(""));
    let hint = "write the path of a file that holds the token alone";
    let token = Token::of_file(&beside.join(&path))
        .map_err(|problem| file.wrong(table.span_of(TOKEN_FILE), &table.key(TOKEN_FILE), problem, hint))
        .ok();
    (Some(path), token)
}
