//! A file that exists whole or not at all: written without a name, synced, and moved into place.
//!
//! It has no name because it holds content: an interrupted or killed process leaves nothing behind. If the file system
//! does not support files without a name, it is written under another name, and that file stays behind then.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Mode, OFlags, linkat};

pub(super) struct Draft {
    path: PathBuf,
    draft: PathBuf,
    /// Whether the file has no name yet.
    nameless: bool,
    file: Option<BufWriter<File>>,
}

impl Draft {
    /// Creates the draft beside the file, so that it can be renamed, and for this user only, because of its content.
    pub(super) fn of(path: &Path) -> io::Result<Draft> {
        use std::os::unix::fs::OpenOptionsExt;
        // The target of a link is written, and not the link itself.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if fs::metadata(path).is_ok_and(|there| !there.is_file()) {
            // Renaming a file over a device or a pipe would destroy it.
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "what is there is no file; leave --output out to write to stdout",
            ));
        }
        let name = path.file_name().ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "it names no file"))?;
        let mut draft = name.to_owned();
        draft.push(format!(".{}.draft", std::process::id()));
        let draft = path.with_file_name(draft);
        let (file, nameless) = match nameless(directory_of(path)) {
            Some(file) => (file, true),
            None => (File::options().write(true).create_new(true).mode(0o600).open(&draft)?, false),
        };
        Ok(Draft { path: path.to_owned(), draft, nameless, file: Some(BufWriter::new(file)) })
    }

    /// Moves the draft into place. Until then, and whenever that fails, the previous file stays.
    pub(super) fn finish(mut self) -> io::Result<()> {
        let Some(file) = self.file.take() else { return Ok(()) };
        let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.sync_all()?;
        if self.nameless {
            // A name can only be given if it is free, so that replacing a file takes two steps.
            linkat(CWD, format!("/proc/self/fd/{}", file.as_raw_fd()), CWD, &self.draft, AtFlags::SYMLINK_FOLLOW)?;
        }
        fs::rename(&self.draft, &self.path)?;
        // The rename survives a loss of power too, if directories can be synced.
        let _ = File::open(directory_of(&self.path)).and_then(|directory| directory.sync_all());
        Ok(())
    }
}

fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn nameless(directory: &Path) -> Option<File> {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR).ok().map(File::from)
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.as_mut().map_or(Ok(bytes.len()), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), Write::flush)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        // After the rename no file has this name.
        let _ = fs::remove_file(&self.draft);
    }
}
