//! Tokens, which are in files of their own.

use std::fs::{self, Metadata};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{fmt, io};

use subtle::ConstantTimeEq;

/// Longest token, in bytes. A longer file holds something else.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// Fewest characters of a token that is hard to guess.
const TOKEN_CHARACTERS_MIN: usize = 16;

/// The permissions of anybody but the user.
const OTHERS: u32 = 0o077;

/// A secret, which never prints itself.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Returns the secret, for the one place that presents it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether this is the secret. Where the two differ does not show in the time that it takes (MSG-13.7).
    pub fn is(&self, presented: &str) -> bool {
        self.0.as_bytes().ct_eq(presented.as_bytes()).into()
    }

    /// Reads the file of a token, or returns what is wrong with it.
    pub fn of_file(path: &Path) -> Result<(Token, Metadata), Unusable> {
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

    /// Returns what makes the token less of a secret than it should be, and what to do about it.
    pub fn weaknesses(&self, about: &Metadata) -> impl Iterator<Item = (&'static str, &'static str)> {
        let is_short = self.0.len() < TOKEN_CHARACTERS_MIN;
        let is_open = about.permissions().mode() & OTHERS != 0;
        let short =
            is_short.then_some(("the token is shorter than 16 characters, and can be guessed", "make a longer one"));
        let open = is_open.then_some(("other users of this machine have access to the file", "chmod 600 it"));
        short.into_iter().chain(open)
    }
}

/// Why a file gives no token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
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
