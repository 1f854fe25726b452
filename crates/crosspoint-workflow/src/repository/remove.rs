//! Clears a directory away.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::failpoint::reached;
use super::fault::Fault;

/// Removes a directory with everything in it. Links are removed, and what they lead to stays. Does nothing where there
/// is no such directory.
pub fn remove(directory: &Path) -> Result<(), Fault> {
    let removed = match fs::remove_dir_all(directory) {
        // In a directory that may not be written to, nothing can be removed.
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied && !directory.is_symlink() => {
            unlock(directory);
            fs::remove_dir_all(directory)
        }
        removed => removed,
    };
    match removed {
        Ok(()) => reached("removed").map_err(|errno| Fault::of(directory, errno)),
        Err(source) if source.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Fault::from_io(directory, source)),
    }
}

/// Lets the owner write to all directories. What fails here shows when the directory is removed.
fn unlock(directory: &Path) {
    let mut waiting = vec![directory.to_owned()];
    while let Some(directory) = waiting.pop() {
        // Only directories come here: the type of an entry is that of a link itself.
        let _ = fs::set_permissions(&directory, fs::Permissions::from_mode(0o700));
        for entry in fs::read_dir(&directory).into_iter().flatten().flatten() {
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                waiting.push(entry.path());
            }
        }
    }
}
