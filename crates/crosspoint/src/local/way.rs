//! Paths of sockets of any length.
//!
//! The system's address of a socket has room for 107 bytes. Directories may be longer, so a long one is opened and
//! named by the number of its descriptor: `/proc/self/fd/N/server.sock`. That works as long as the descriptor is open.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

/// Longest path in an address, in bytes, without the zero at its end.
const PATH_BYTES_MAX: usize = 107;

/// The path by which a socket is reached. Clones share the directory.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    path: PathBuf,
    /// Kept open if the path goes through it.
    _directory: Option<Arc<OwnedFd>>,
}

impl Way {
    pub(crate) fn to(socket: &Path) -> io::Result<Way> {
        if socket.as_os_str().len() <= PATH_BYTES_MAX {
            return Ok(Way { path: socket.to_owned(), _directory: None });
        }
        let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
            return Err(ErrorKind::InvalidFilename.into());
        };
        let directory = rustix::fs::open(directory, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
        let path = Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name);
        Ok(Way { path, _directory: Some(Arc::new(directory)) })
    }

    /// A path that is short enough.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}
