//! The token that commands present: from the environment, or from a file that only its user may read.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::{env, fs};

use anyhow::Result;
use reqwest::header::HeaderValue;

use super::failed::Failed;
use crate::terminal::render;

/// The token itself.
const TOKEN_VARIABLE: &str = "CROSSPOINT_TOKEN";

/// The path of a file that holds it.
const FILE_VARIABLE: &str = "CROSSPOINT_TOKEN_FILE";

/// The file in a data directory that holds the token for its server.
pub(crate) const TOKEN_FILE: &str = "token";

/// Longest token, in bytes.
const TOKEN_BYTES_MAX: u64 = 4 << 10;

/// Says where the token is looked for. The file of a data directory is for the server that was found there: the token
/// of one server is not sent to another.
pub(super) const NAMED_HINT: &str = "commands find their token in CROSSPOINT_TOKEN, or in the file that CROSSPOINT_TOKEN_FILE names; with --server or \
     CROSSPOINT_SERVER the file \"token\" of a data directory is not used; the server's own user needs no token \
     without --server and CROSSPOINT_SERVER, with --data DIR";
pub(super) const LEFT_HINT: &str = "commands find their token in CROSSPOINT_TOKEN, in the file that CROSSPOINT_TOKEN_FILE names, or in the file \
     \"token\" of the data directory; the server's own user makes one: crosspoint token create NAME --for admin";

/// The permissions of anybody but the user.
const OTHERS: u32 = 0o077;

/// A token that is presented.
#[derive(Clone)]
pub(super) struct Presented {
    pub(super) header: HeaderValue,
    /// Where it was found, for people.
    pub(super) place: String,
}

/// Returns the token that shows who asks. The server of a data directory is asked with the token of that directory.
/// There is no option for a token: other users of the machine can read the arguments of a program.
pub(super) fn presented(data: Option<&Path>) -> Result<Option<Presented>> {
    if let Some(token) = env::var(TOKEN_VARIABLE).ok().filter(|token| !token.is_empty()) {
        return header(&token, TOKEN_VARIABLE).map(Some);
    }
    let named = env::var_os(FILE_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from);
    let left = data.map(|data| data.join(TOKEN_FILE)).filter(|path| path.exists());
    let Some(path) = named.or(left) else { return Ok(None) };
    let shown = render::visible(&path.display().to_string());
    let unread = |why: &str| {
        let hint = format!("write the token alone into it, or set {TOKEN_VARIABLE}");
        Failed::other(format!("the file of the token, {shown}, {why}"), hint)
    };
    let about = fs::metadata(&path).map_err(|error| unread(&format!("cannot be read: {}", error.kind())))?;
    if about.len() > TOKEN_BYTES_MAX {
        return Err(unread("is too long for a token").into());
    }
    if about.permissions().mode() & OTHERS != 0 {
        warn_once(&shown);
    }
    let text = fs::read_to_string(&path).map_err(|error| unread(&format!("cannot be read: {}", error.kind())))?;
    header(text.trim(), &shown).map(Some)
}

fn header(token: &str, place: &str) -> Result<Presented> {
    let is_token = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic());
    let value = HeaderValue::from_str(&format!("Bearer {token}")).ok().filter(|_| is_token);
    let mut value = value.ok_or_else(|| {
        Failed::other(format!("{place} does not hold a token"), "a token is one word of visible ASCII characters")
    })?;
    // It prints itself nowhere.
    value.set_sensitive(true);
    Ok(Presented { header: value, place: place.to_owned() })
}

/// Says it once, because some commands look for their server again and again.
fn warn_once(shown: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| render::note(&format!("others can read the token in {shown}; chmod 600 it")));
}
