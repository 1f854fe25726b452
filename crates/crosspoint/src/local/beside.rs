//! A store beside that of a server.
//!
//! A server has its store alone. A command that must do its work itself (a workflow that brings programs along) then
//! has a store of its own, in a directory below the data directory of the server. The directory has a mark, so that
//! every later process knows whose it is: the data directory around it is protected as much as its own.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

/// Name of the directory in the data directory of a server.
const DIRECTORY: &str = "embedded";

/// Name of the mark in it.
const MARK: &str = "beside";

/// Returns where the store of commands is, beside the server of this data directory.
pub(crate) fn directory(data: &Path) -> PathBuf {
    data.join(DIRECTORY)
}

/// Makes the directory, for this user only.
pub(crate) fn make(data: &Path) -> io::Result<PathBuf> {
    let directory = directory(data);
    super::make_directory(&directory)?;
    let found = fs::symlink_metadata(&directory)?;
    // A repository may contain a link of this name, which leads anywhere.
    if !found.is_dir() || found.uid() != geteuid().as_raw() {
        return Err(io::Error::new(ErrorKind::PermissionDenied, "it is no directory of this user"));
    }
    fs::set_permissions(&directory, Permissions::from_mode(0o700))?;
    // Never written through: a link under this name is not followed.
    match File::options().write(true).create_new(true).mode(0o600).open(directory.join(MARK)) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        Ok(_) | Err(_) => Ok(directory),
    }
}

/// Returns the data directory around a store that is beside a server, else the data directory itself.
pub(crate) fn outermost(data: &Path) -> &Path {
    let is_beside = data.ends_with(DIRECTORY) && fs::symlink_metadata(data.join(MARK)).is_ok();
    data.parent().filter(|_| is_beside).map_or(data, outermost)
}
