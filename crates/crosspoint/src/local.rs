//! Sockets that are files of the data directory.
//!
//! A port of the loopback is open to every user of the machine and to every page in a browser. A socket that is a file is open to whom
//! the file is: it is made with mode 0600, so that it is never open to others, not even for a moment.
//!
//! Every socket is made under a name of its own, `command-PID-CHANCE.sock`, and goes with its process. A server then moves its socket to
//! the name by which it is found, once it has the store: two servers that start at one time never remove each other's. What a killed
//! process has left is swept by the next one that makes a socket there.

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

/// Where a server listens that has no port, in its data directory.
pub(crate) const SERVER_SOCKET: &str = "server.sock";

/// What the address of such a server begins with; its path follows.
pub(crate) const SCHEME: &str = "unix:";

/// How many connections may wait to be taken, if the system allows as many.
const BACKLOG: i32 = 4096;

/// A socket's file, which goes with this.
#[derive(Debug)]
pub(crate) struct SocketFile {
    path: PathBuf,
    /// Device and number: what has its name later may be another's.
    identity: Option<(u64, u64)>,
}

/// Listens in a directory, which is made if it is missing, for this user alone.
pub(crate) fn listen(directory: &Path) -> io::Result<(UnixListener, SocketFile)> {
    make_directory(directory)?;
    sweep::sweep(directory);
    let chance = Uuid::new_v4().simple().to_string();
    let path = std::path::absolute(directory)?.join(sweep::name(std::process::id(), &chance[..8]));
    let listener = bind(&path)?;
    let file = SocketFile { identity: identity(&path), path };
    Ok((UnixListener::from_std(listener)?, file))
}

/// Whether a server listens at the name by which servers are found.
pub(crate) fn is_served(directory: &Path) -> bool {
    Way::to(&directory.join(SERVER_SOCKET)).and_then(|way| UnixStream::connect(way.path())).is_ok()
}

/// Makes a directory for this user alone, where there is none.
pub(crate) fn make_directory(directory: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(directory)
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

    /// Moves it to the name by which servers are found. A socket there on which no process listens is replaced.
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
