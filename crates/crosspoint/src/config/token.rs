//! Tokens, which are in files of their own.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::{self, Path};
use std::{fmt, io};

use subtle::ConstantTimeEq;

use super::agent::Reading;
use super::file::File;

/// Longest token, in bytes. A longer file holds something else.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// Fewest characters of a token that is hard to guess.
const TOKEN_CHARACTERS_MIN: usize = 16;

/// The permissions of anybody but the user.
const OTHERS: u32 = 0o077;

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
        self.0.as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// Reads the file of a token, or returns what is wrong with it.
    fn of_file(path: &Path) -> Result<(Token, Metadata), Unusable> {
        let unread = |error: io::Error| Unusable::Unread(error.kind());
        let about = fs::metadata(path).map_err(unread)?;
        if about.len() > TOKEN_BYTES_MAX {
            return Err(Unusable::Other("the file is too long for a token"));
        }
        let text = fs::read(path).map_err(unread)?;
        let token = str::from_utf8(&text).unwrap_or_default().trim();
        if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(Unusable::Other("the file does not hold a token: one line of visible ASCII characters"));
        }
        Ok((Token(token.to_owned()), about))
    }

    /// Returns what makes the token less of a secret than it should be.
    fn weaknesses(&self, about: &Metadata) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_short = self.0.len() < TOKEN_CHARACTERS_MIN;
        let is_open = about.permissions().mode() & OTHERS != 0;
        let short =
            is_short.then_some(("the token is shorter than 16 characters, and can be guessed", "make a longer one"));
        let open = is_open.then_some(("other users of this machine have access to the file", "chmod 600 it"));
        short.into_iter().chain(open)
    }
}

/// Why a file gives no token.
enum Unusable {
    /// It cannot be read.
    Unread(io::ErrorKind),
    /// It can be read, and this is wrong with it.
    Other(&'static str),
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[token]")
    }
}

/// Reads the key and the file that it names. A relative path is relative to the configuration file.
pub(super) fn read(table: &Reading<'_>, file: &mut File) -> (Option<String>, Option<Token>) {
    let Some(path) = table.text(file, TOKEN_FILE, "write the path of a file in quotes") else { return (None, None) };
    let beside = file.source.path.parent().unwrap_or(Path::new("")).join(&path);
    let (span, key) = (table.span_of(TOKEN_FILE), table.key(TOKEN_FILE));
    match Token::of_file(&beside) {
        Ok((token, about)) => {
            for (what, hint) in token.weaknesses(&about) {
                file.warn(span.clone(), &key, what, hint);
            }
            (Some(path), Some(token))
        }
        Err(Unusable::Other(what)) => {
            file.wrong(span, &key, what, "write the path of a file that holds the token alone");
            (Some(path), None)
        }
        Err(Unusable::Unread(why)) => {
            let whole = path::absolute(&beside).unwrap_or(beside);
            let (what, hint) = unread(why, &whole);
            file.wrong(span, &key, &what, &hint);
            (Some(path), None)
        }
    }
}

/// Says why a file cannot be read, and what to do about it.
fn unread(why: io::ErrorKind, path: &Path) -> (String, String) {
    let shown = path.display();
    if why == io::ErrorKind::NotFound {
        let hint = format!("write the token into it; (umask 077; openssl rand -hex 16 > {shown}) makes a new one");
        return (format!("there is no file {shown}"), hint);
    }
    let hint = "let the user that runs the server read it; a path is relative to the configuration file";
    (format!("{shown} cannot be read: {why}"), hint.to_owned())
}
