//! `server.json`: trusted only if no other user can have written it, and only for a server of this user on this
//! machine.
//!
//! The file says where work is sent, with everything in it. A cloned repository may contain such a file, and so may a
//! directory that other users write to. So file and directory must belong to this user, and the address must be a
//! loopback port on which this user listens, or a socket in the same directory. Anything else is passed over with a
//! note. If the file names both, the socket is the address: it asks for no token. The same holds for
//! `command.json`, which names a socket alone.

use std::fs::File;
use std::io::{self, Read};
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use rustix::process::geteuid;
use serde::Deserialize;

use super::listener::{self, Owner};
use crate::config::{COMMAND_FILE, SERVER_FILE};
use crate::local::SCHEME;

/// Most bytes that are read of the file: more than any server writes there.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Permission bits of a directory that other users may write to. Nothing in such a directory is trusted.
const OTHERS_WRITE: u32 = 0o022;

/// What a server has left in its data directory.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Nothing, or the address of a server that is gone.
    Nothing,
    /// A file that is not trusted, and the reason.
    Doubtful(&'static str),
    /// The address of a server.
    At(String),
}

/// Why there is no address.
enum Not {
    There,
    Believed(&'static str),
}

#[derive(Deserialize)]
struct ServerNote {
    url: String,
    socket: Option<String>,
}

/// Reads the address that a server has left in its data directory.
pub(super) fn read(data: &Path) -> Left {
    match address(data) {
        Ok(url) => Left::At(url),
        Err(Not::There) => Left::Nothing,
        Err(Not::Believed(why)) => Left::Doubtful(why),
    }
}

/// A file that is trusted, and the directory that it is in.
struct Trusted {
    directory: OwnedFd,
    directory_stat: Stat,
    text: String,
}

fn address(data: &Path) -> Result<String, Not> {
    let Trusted { directory, directory_stat, text } = trusted(data, SERVER_FILE)?;
    let note: ServerNote = serde_json::from_str(&text).map_err(|_| Not::Believed("it is not what servers write"))?;
    let judged = |url: &str| match url.strip_prefix(SCHEME) {
        Some(path) => socket(&directory, &directory_stat, Path::new(path)),
        None => port(url),
    };
    if let Some(beside) = note.socket {
        match judged(&beside) {
            Ok(()) => return Ok(beside),
            Err(Not::There) => {}
            Err(not) => return Err(not),
        }
    }
    judged(&note.url).map(|()| note.url)
}

/// Reads what a command has left that does work here, if it is trusted and names a socket in the same directory.
pub(super) fn command(data: &Path) -> Option<String> {
    #[derive(Deserialize)]
    struct CommandNote {
        url: String,
    }
    let Trusted { directory, directory_stat, text } = trusted(data, COMMAND_FILE).ok()?;
    let note: CommandNote = serde_json::from_str(&text).ok()?;
    let path = note.url.strip_prefix(SCHEME)?;
    socket(&directory, &directory_stat, Path::new(path)).ok().map(|()| text)
}

/// Reads a file that no other user can have written.
fn trusted(data: &Path, name: &str) -> Result<Trusted, Not> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let directory = rustix::fs::open(data, flags, Mode::empty()).map_err(|_| Not::There)?;
    let file = open(&directory, name)?;
    believe(&stat(&file)?, FileType::RegularFile, "it is no regular file", "it belongs to another user")?;
    let directory_stat = stat(&directory)?;
    believe(&directory_stat, FileType::Directory, "it is in no directory", "its directory belongs to another user")?;
    if directory_stat.st_mode & OTHERS_WRITE != 0 {
        return Err(Not::Believed("other users may write to its directory; chmod go-w it"));
    }
    let mut text = String::new();
    let unread = |_: io::Error| Not::Believed("it cannot be read");
    File::from(file).take(FILE_BYTES_MAX).read_to_string(&mut text).map_err(unread)?;
    Ok(Trusted { directory, directory_stat, text })
}

/// Opens the file without following links and without blocking.
fn open(directory: &OwnedFd, name: &str) -> Result<OwnedFd, Not> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOENT => Not::There,
        Errno::LOOP => Not::Believed("it is a link"),
        _ => Not::Believed("it cannot be opened"),
    })
}

fn stat(file: &OwnedFd) -> Result<Stat, Not> {
    rustix::fs::fstat(file).map_err(|_| Not::Believed("it cannot be looked at"))
}

/// Checks that a file has the expected type and belongs to this user.
fn believe(found: &Stat, kind: FileType, other: &'static str, foreign: &'static str) -> Result<(), Not> {
    if FileType::from_raw_mode(found.st_mode) != kind {
        return Err(Not::Believed(other));
    }
    if found.st_uid == geteuid().as_raw() { Ok(()) } else { Err(Not::Believed(foreign)) }
}

/// Checks that a socket is in the same directory as the file.
fn socket(directory: &OwnedFd, directory_stat: &Stat, path: &Path) -> Result<(), Not> {
    let elsewhere = Not::Believed("it names a socket outside its directory");
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Err(elsewhere) };
    let Ok(there) = rustix::fs::stat(parent) else { return Err(elsewhere) };
    if !path.is_absolute() || (there.st_dev, there.st_ino) != (directory_stat.st_dev, directory_stat.st_ino) {
        return Err(elsewhere);
    }
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| Not::There)?;
    believe(&found, FileType::Socket, "it names a file that is no socket", "it names a socket of another user")
}

/// Checks that a port is on the loopback, and that this user listens on it.
fn port(url: &str) -> Result<(), Not> {
    let address = url.strip_prefix("http://").and_then(|address| address.parse::<SocketAddr>().ok());
    let Some(address) = address.filter(|address| address.ip().is_loopback()) else {
        return Err(Not::Believed("it names no address of this machine's loopback"));
    };
    match listener::of(address) {
        Ok(Owner::Us) => Ok(()),
        Ok(Owner::None) => Err(Not::There),
        Ok(Owner::Another) => Err(Not::Believed("another user listens at the address that it names")),
        Err(_) => Err(Not::Believed("the system does not say who listens at the address that it names")),
    }
}
