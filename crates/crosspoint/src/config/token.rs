//! Tokens, which are in files of their own.

use std::io;
use std::path::{self, Path};

use crosspoint_http::token::Unusable;

use super::agent::Reading;
use super::file::File;

pub(crate) use crosspoint_http::token::Token;

/// The key that names the file of a token.
pub(super) const TOKEN_FILE: &str = "token_file";

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
