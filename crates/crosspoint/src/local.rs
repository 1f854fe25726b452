//! Sockets that are files in the data directory.
//!
//! A port of the loopback is open to every user of the machine and to every page in a browser. Access to a socket file
//! is decided by its permissions. It is created with mode 0600, so that other users have no access at any moment.
//!
//! Every socket is created under a name of its own, `command-PID-CHANCE.sock`, and is removed with its process. A
//! server renames its socket to the published name once it has the store, so two servers that start at the same time
//! never remove each other's socket. The socket of a killed process is removed by the next process that creates one in
//! the directory.

pub(crate) mod beside;
mod sweep;
mod way;

use std::fs::{self, DirBuilder};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::os::unix::net::{UnixListener as StdListener, UnixStream};
use std::path::{Path, PathBuf};

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use tokio::net::UnixListener;
use uuid::Uuid;

pub(crate) use way::Way;

/// Published name of the socket of a server, in its data directory.
pub(crate) const SERVER_SOCKET: &str = "server.sock";

/// Prefix of the address of such a socket. The path of the socket follows.
pub(crate) const SCHEME: &str = "unix:";

/// Most connections that may wait to be accepted, if the system allows that number.
pub(crate) const BACKLOG: i32 = 4096;

/// The file of a socket. Dropping this value removes the file.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and inode number. A later file of the same name may belong to another process.
    identity: Option<(u64, u64)>,
}

/// Listens in a directory. A missing directory is created, for this user only.
pub(crate) fn listen(directory: &Path) -> io::Result<(UnixListener, SocketFile)> {
    make_directory(directory)?;
    sweep::sweep(directory);
    let chance = Uuid::new_v4().simple().to_string();
    let path = std::path::absolute(directory)?.join(sweep::name(std::process::id(), &chance[..8]));
    let listener = bind(&path)?;
    let file = SocketFile { identity: identity(&path), path };
    Ok((UnixListener::from_std(listener)?, file))
}

/// Whether a server listens on the published name.
pub(crate) fn is_served(directory: &Path) -> bool {
    Way::to(&directory.join(SERVER_SOCKET)).and_then(|way| UnixStream::connect(way.path())).is_ok()
}

/// Creates a directory for this user only, unless it exists. In a repository, git is told to leave it alone.
pub(crate) fn make_directory(directory: &Path) -> io::Result<()> {
    let is_new = !directory.exists();
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if is_new {
        // Nothing depends on it.
        let _ = fs::write(directory.join(".gitignore"), "*\n");
    }
    Ok(())
}

fn bind(path: &Path) -> io::Result<StdListener> {
    let way = Way::to(path)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    // The file gets the mode that the socket has when it is bound, less the umask.
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(way.path())?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(StdListener::from(socket))
}

fn identity(path: &Path) -> Option<(u64, u64)> {
    let found = fs::symlink_metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

impl SocketFile {
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Renames the socket to the published name. A socket of that name on which no process listens is replaced.
    pub(crate) fn publish(&mut self, directory: &Path) -> io::Result<()> {
        if is_served(directory) {
            return Err(ErrorKind::AddrInUse.into());
        }
        let path = self.path.with_file_name(SERVER_SOCKET);
        fs::rename(&self.path, &path)?;
        self.path = path;
        Ok(())
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if self.identity.is_some() && identity(&self.path) == self.identity {
            let _ = fs::remove_file(&self.path);
        }
    }
}
